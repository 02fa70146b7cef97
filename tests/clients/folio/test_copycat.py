"""Copy cataloguing against a Z39.50 server, yaz-ztest from Debian's package yaz."""

import shutil
import subprocess

import folioclient
import pytest
from running import PATIENCE_S, free_port, listening

ZTEST = shutil.which("yaz-ztest")
pytestmark = pytest.mark.skipif(ZTEST is None, reason="there is no yaz-ztest: apt install yaz")


@pytest.fixture
def target():
    port = free_port()
    process = subprocess.Popen([ZTEST, f"tcp:127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    listening(process, port)
    yield f"127.0.0.1:{port}/Default"
    process.terminate()
    process.wait(timeout=PATIENCE_S)


def test_a_record_is_copied(library, target):
    with folioclient.FolioClient(library.url, library.tenant, "admin", library.password("admin")) as client:
        profile = client.folio_post("/copycat/profiles", {
            "name": "A server for tests", "url": target, "externalIdQueryMap": "@attr 1=4 $identifier",
            "internalIdEmbedPath": "999ff$i", "createJobProfileId": "d0ebb7b0-2f0f-11eb-adc1-0242ac120002",
            "updateJobProfileId": "91f9b8d6-d80e-4727-9783-73fb53e3c786", "enabled": True,
        })
        made = client.folio_post("/copycat/imports", {"profileId": profile["id"], "externalIdentifier": "computer"})
        instance = client.folio_get(f"/instance-storage/instances/{made['internalIdentifier']}")
        assert instance["source"] == "MARC"
        assert instance["title"]
        before = instance["_version"]
        again = client.folio_post("/copycat/imports", {
            "profileId": profile["id"], "externalIdentifier": "computer", "internalIdentifier": instance["id"],
        })
        assert again["internalIdentifier"] == instance["id"]
        assert before <= client.folio_get(f"/instance-storage/instances/{instance['id']}")["_version"]
