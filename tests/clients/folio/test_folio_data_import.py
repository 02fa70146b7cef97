"""folio_data_import sends real files; folioclient reads back the results; pymarc counts independently."""

import os
import subprocess
import sys
from pathlib import Path

import folioclient
import pymarc
import pytest
from running import PATIENCE_S

DATA = Path(os.environ.get("PINAKES_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
MARC = DATA / "marc"
pytestmark = pytest.mark.skipif(not MARC.is_dir(), reason="no collection of records: PINAKES_TEST_DATA names one")
AUTHORITIES = "Default - Create SRS MARC Authority"
BIBS = "Default - Create instance and SRS MARC Bib"


def count(path):
    """Returns the records of a file that pymarc can read."""
    with path.open("rb") as file:
        reader = pymarc.MARCReader(file, to_unicode=True, permissive=True)
        return sum(1 for record in reader if record is not None)


@pytest.fixture
def client(library):
    with folioclient.FolioClient(
        library.url, library.tenant, "admin", library.password("admin")
    ) as it:
        yield it


@pytest.mark.parametrize(
    ("name", "profile", "record_type", "path"),
    [
        ("authority/folio-lcsh-subjects-01.mrc", AUTHORITIES, "MARC_AUTHORITY", "/authority-storage/authorities"),
        ("authority/folio-naf-names-02.mrc", AUTHORITIES, "MARC_AUTHORITY", "/authority-storage/authorities"),
        # Not a file that pymarc cannot read completely: this client never finishes a job with such a file.
        ("bib/folio-perf-serialset-1k.mrc", BIBS, "MARC_BIB", "/instance-storage/instances"),
    ],
)
def test_a_file_is_imported(library, client, tmp_path, name, profile, record_type, path):
    # The client moves files that it has sent.
    file = tmp_path / Path(name).name
    file.write_bytes((MARC / name).read_bytes())
    n_records = count(file)
    assert 0 < n_records

    def total(path, query=""):
        return client.folio_get(f"{path}?limit=0{query}")["totalRecords"]

    before = total(path), total("/source-storage/records", f"&recordType={record_type}")
    done = subprocess.run(
        [
            sys.executable, "-m", "folio_data_import", "marc",
            "--gateway-url", library.url, "--tenant-id", library.tenant,
            "--username", "admin", "--password", library.password("admin"),
            "--marc-file-paths", str(file), "--import-profile-name", profile,
            "--batch-size", "250", "--no-progress", "--file-names-in-di-logs",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=5 * PATIENCE_S, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    jobs = client.folio_get(
        "/metadata-provider/jobExecutions", "jobExecutions", query_params={"sortBy": "started_date,desc", "limit": 1}
    )
    job = jobs[0]
    assert job["fileName"] == file.name
    assert job["status"] == "COMMITTED", job
    assert job["progress"] == {"jobExecutionId": job["id"], "current": n_records, "total": n_records}
    summary = client.folio_get(f"/metadata-provider/jobSummary/{job['id']}")
    assert summary["sourceRecordSummary"]["totalCreatedEntities"] == n_records
    assert summary["totalErrors"] == 0
    assert total(path) == before[0] + n_records
    assert total("/source-storage/records", f"&recordType={record_type}") == before[1] + n_records
