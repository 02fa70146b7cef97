"""dvuploader: files into a draft, through the form and through URLs that the server signs."""

import hashlib

import pytest
import requests
from dvuploader import DVUploader, File
from running import PATIENCE_S


@pytest.fixture
def files(tmp_path):
    contents = {"tides.txt": b"0.7\n", "sub/gauge.bin": bytes(range(256)) * 4096}
    listed = []
    for path, content in contents.items():
        on_disk = tmp_path / path
        on_disk.parent.mkdir(exist_ok=True)
        on_disk.write_bytes(content)
        folder = path.rpartition("/")[0]
        listed.append(File(filepath=str(on_disk), directoryLabel=folder))
    return contents, listed


def uploaded(site, pid: str) -> dict:
    data = site.get(f"/api/datasets/:persistentId/?persistentId={pid}", site.token).json()["data"]
    found = {}
    for it in data["latestVersion"]["files"]:
        path = "/".join(filter(None, [it.get("directoryLabel"), it["label"]]))
        number = it["dataFile"]["id"]
        found[path] = site.get(f"/api/access/datafile/{number}", site.token).content
        assert it["dataFile"]["md5"] == hashlib.md5(found[path]).hexdigest()
    return found


def test_through_the_form(site, files):
    contents, listed = files
    pid = site.dataset()
    DVUploader(files=listed).upload(persistent_id=pid, dataverse_url=site.url, api_token=site.token)
    assert uploaded(site, pid) == contents


def test_through_signed_urls(site, files):
    contents, listed = files
    setting = f"{site.url}/api/admin/settings/:UploadMethods"
    assert requests.put(setting, data="native/http,direct", timeout=PATIENCE_S).status_code == 200
    try:
        pid = site.dataset()
        DVUploader(files=listed).upload(
            persistent_id=pid, dataverse_url=site.url, api_token=site.token, n_parallel_uploads=2
        )
        assert uploaded(site, pid) == contents
    finally:
        assert requests.delete(setting, timeout=PATIENCE_S).status_code == 200
