"""dvuploader: uploads files to a draft, through the form and through URLs signed by the server."""

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


def test_changed_files_are_replaced(site, files, tmp_path):
    """Files that were already uploaded stay; files that differ are replaced."""
    contents, listed = files
    pid = site.dataset()
    DVUploader(files=listed).upload(persistent_id=pid, dataverse_url=site.url, api_token=site.token)
    changed = tmp_path / "tides.txt"
    changed.write_bytes(b"0.9\n")
    again = [File(filepath=str(tmp_path / it), directoryLabel=it.rpartition("/")[0]) for it in contents]
    DVUploader(files=again).upload(persistent_id=pid, dataverse_url=site.url, api_token=site.token)
    assert uploaded(site, pid) == {**contents, "tides.txt": b"0.9\n"}


def test_a_folder_with_tables_and_descriptions(site, tmp_path):
    for name in ["a.csv", "b.csv"]:
        (tmp_path / name).write_text("day,level\n1,0.7\n")
    listed = [
        File(filepath=str(tmp_path / "a.csv"), description="First", categories=["Data"]),
        File(filepath=str(tmp_path / "b.csv"), directoryLabel="tables", description="Second"),
    ]
    pid = site.dataset()
    DVUploader(files=listed).upload(persistent_id=pid, dataverse_url=site.url, api_token=site.token)
    data = site.get(f"/api/datasets/:persistentId/?persistentId={pid}", site.token).json()["data"]
    # The client packs small files, and packed files are ingested as tables.
    found = {
        it["label"]: (it["description"], it.get("categories"), it.get("directoryLabel"))
        for it in data["latestVersion"]["files"]
    }
    assert found == {"a.tab": ("First", ["Data"], None), "b.tab": ("Second", ["DATA"], "tables")}
