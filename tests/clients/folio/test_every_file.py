"""Every file of the corpus that pymarc can count is uploaded, and must give as many records."""

import io
import os
import time
from pathlib import Path

import folioclient
import pymarc
import pytest
from running import PATIENCE_S

DATA = Path(os.environ.get("PINAKES_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
MARC = DATA / "marc"
pytestmark = pytest.mark.skipif(not MARC.is_dir(), reason="no collection of records: PINAKES_TEST_DATA names one")
PROFILES = {
    "z": "6eefa4c6-bbf7-4845-ad82-de7fc5abd0e3",
    "holdings": "80898dee-449f-44dd-9c8e-37d5eb469b1d",
    "bib": "e34d7b92-9b83-11eb-a8b3-0242ac130003",
}
# Files in which pymarc loses its position because records state a wrong length. Counted by record terminators.
STOPS_EARLY = {"catmandu-bu-bibs.mrc": 110}
# Larger files hold more of the same, and debug builds are slow.
LARGEST_BYTES = 400_000


def records(path):
    """Yields what pymarc reads: records, and None for each that it cannot read."""
    if path.suffix == ".xml":
        return pymarc.parse_xml_to_array(str(path))
    return list(pymarc.MARCReader(io.BytesIO(path.read_bytes()), to_unicode=True, permissive=True))


def profile(read):
    kinds = [str(it.leader)[6] for it in read if it is not None]
    if "z" in kinds:
        return PROFILES["z"]
    return PROFILES["holdings" if kinds and kinds[0] in "uvxy" else "bib"]


def files():
    for folder in ["authority", "bib", "holdings", "marcxml"]:
        for path in sorted((MARC / folder).glob("*")):
            if path.suffix in {".mrc", ".xml", ".dat", ".marc"} and path.stat().st_size <= LARGEST_BYTES:
                yield path


@pytest.fixture
def client(library):
    with folioclient.FolioClient(
        library.url, library.tenant, "admin", library.password("admin")
    ) as it:
        yield it


def upload(client, path, profile_id):
    made = client.folio_post("/data-import/uploadDefinitions", {"fileDefinitions": [{"name": path.name}]})
    file = made["fileDefinitions"][0]
    url = f"/data-import/uploadDefinitions/{made['id']}"
    headers = {**client.folio_headers, "content-type": "application/octet-stream"}
    with client.get_folio_http_client() as http:
        sent = http.post(f"{client.gateway_url}{url}/files/{file['id']}", content=path.read_bytes(), headers=headers)
        assert sent.status_code == 200, sent.text
        info = {"id": profile_id, "name": "x", "dataType": "MARC"}
        begun = http.post(
            f"{client.gateway_url}{url}/processFiles",
            json={"uploadDefinition": {"id": made["id"]}, "jobProfileInfo": info}, headers=client.folio_headers,
        )
        assert begun.status_code == 204, begun.text
    end = time.monotonic() + 5 * PATIENCE_S
    while time.monotonic() < end:
        job = client.folio_get(f"/change-manager/jobExecutions/{file['jobExecutionId']}")
        if job["status"] in {"COMMITTED", "ERROR"}:
            return job
        time.sleep(0.05)
    raise AssertionError(job)


def test_every_file_is_counted_alike(client):
    wrong = []
    n_files = 0
    for path in files():
        read = records(path)
        job = upload(client, path, profile(read))
        if job.get("errorStatus"):
            # Types that no profile handles: classification, community information.
            assert not any(str(it.leader)[6] in "acdefgijkmoprtuvxyz" for it in read if it is not None), (path, job)
            continue
        n_files += 1
        kept = sum(
            client.folio_get(f"/source-storage/records?recordType={kind}&snapshotId={job['id']}&limit=0")["totalRecords"]
            for kind in ["MARC_BIB", "MARC_AUTHORITY", "MARC_HOLDING"]
        )
        n_records = STOPS_EARLY.get(path.name, len(read))
        if not n_records == kept == job["progress"]["total"] == job["progress"]["current"]:
            wrong.append((path.name, n_records, kept, job["progress"]))
    assert not wrong
    assert 30 < n_files
