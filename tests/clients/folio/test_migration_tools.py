"""folio_migration_tools loads a library: the output of its transforming tasks is created here (they fetch
schemas from GitHub), and its own loading tasks load it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import folioclient
import pytest
from running import PATIENCE_S

DATA = Path(os.environ.get("PINAKES_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
POINT = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f"
BOOK, LOAN_TYPE = "1a54b431-2e4f-452d-9cae-9cee66c9a892", "2b94c631-fca9-4892-a730-03ee529ffe27"
MAIN, FOLIO_SOURCE = "fcd64ce1-6995-48f0-840e-89ffa2288371", "f32d531e-df79-46b3-8932-cdd35f7a2264"
N = 30


def uid(kind: int, n: int) -> str:
    return f"00000000-0000-4000-8000-{kind:04d}{n:08d}"


INSTANCES = [
    {
        "id": uid(1, n), "source": "FOLIO", "title": f"Title {n}",
        "instanceTypeId": "30fffe0e-e985-4144-b2e2-1e8179bdb41f",
    }
    for n in range(N)
]
HOLDINGS = [
    {"id": uid(2, n), "instanceId": uid(1, n), "permanentLocationId": MAIN, "sourceId": FOLIO_SOURCE} for n in range(N)
]
ITEMS = [
    {
        "id": uid(3, n), "holdingsRecordId": uid(2, n), "barcode": f"i{n}", "materialTypeId": BOOK,
        "permanentLoanTypeId": LOAN_TYPE, "status": {"name": "Available"},
    }
    for n in range(N)
]
USERS = [
    {
        "id": uid(4, n), "username": f"u{n}", "externalSystemId": f"e{n}", "barcode": f"p{n}", "active": True,
        "type": "patron", "patronGroup": "staff",
        "personal": {"lastName": f"Last {n}", "firstName": "First", "email": "a@example.org", "preferredContactTypeId": "email"},
    }
    for n in range(N)
]
ORGANIZATIONS = [{"id": uid(5, 1), "name": "Seller", "code": "S", "status": "Active"}]
ORDERS = [{"id": uid(6, 1), "poNumber": "10000", "orderType": "One-Time", "vendor": uid(5, 1)}]
EXTRADATA = [
    ("precedingSucceedingTitles", {"precedingInstanceId": uid(1, 1), "succeedingInstanceId": uid(1, 2)}),
    ("courselisting", {"id": uid(8, 1), "termId": uid(7, 1)}),
    ("course", {"id": uid(8, 2), "name": "Logic", "courseListingId": uid(8, 1)}),
    ("instructor", {"name": "Ann Example", "courseListingId": uid(8, 1)}),
    ("contacts", {"firstName": "Ann", "lastName": "Example"}),
    ("interfaces", {"id": uid(9, 1), "name": "A shop"}),
    ("interfaceCredential", {"interfaceId": uid(9, 1), "username": "us", "password": "secret"}),
    ("account", {
        "id": uid(10, 1), "amount": 3.0, "remaining": 3.0, "status": {"name": "Open"}, "paymentStatus": {"name": "Outstanding"},
        "userId": uid(4, 1), "feeFineId": uid(10, 2), "ownerId": uid(10, 3), "feeFineType": "Damage",
    }),
    ("feefineaction", {"accountId": uid(10, 1), "userId": uid(4, 1), "typeAction": "Damage", "amountAction": 3.0}),
]
LOANS = "item_barcode\tpatron_barcode\tdue_date\tout_date\trenewal_count\tnext_item_status\n" + "".join(
    f"i{n}\tp{n}\t2030-02-0{n} 23:59\t2026-01-0{n} 10:00\t{n}\t{status}\n"
    for n, status in [(1, ""), (2, "Declared lost"), (3, "Claimed returned"), (4, "")]
)
REQUESTS = (
    "item_barcode\tpatron_barcode\trequest_date\trequest_expiration_date\tcomment\trequest_type\tpickup_servicepoint_id\n"
    f"i4\tp5\t2026-01-05 10:00\t2030-01-05 10:00\tplease\tHold\t{POINT}\n"
    f"i6\tp6\t2026-01-05 10:00\t2030-01-05 10:00\t\tPage\t{POINT}\n"
)


def task(name: str, kind: str, **more) -> dict:
    return {"name": name, "migrationTaskType": kind, **more}


def poster(name: str, kind: str, object_type: str, **more) -> dict:
    files = [{"fileName": f"{object_type.lower()}.json"}]
    return task(name, kind, objectType=object_type, batchSize=20, files=files, **more)


TASKS = [
    poster("instances", "BatchPoster", "Instances"),
    poster("instances_again", "InventoryBatchPoster", "Instances", upsert=True, noProgress=True),
    poster("holdings", "BatchPoster", "Holdings"),
    poster("items", "InventoryBatchPoster", "Items", noProgress=True),
    task("users", "UserImportTask", files=[{"fileName": "users.json"}], noProgress=True),
    poster("organizations", "BatchPoster", "Organizations"),
    poster("orders", "BatchPoster", "Orders"),
    poster("extradata", "BatchPoster", "Extradata"),
    task("loans", "LoansMigrator", openLoansFiles=[{"fileName": "loans.tsv"}], fallbackServicePointId=POINT),
    task("requests", "RequestsMigrator", openRequestsFile={"fileName": "requests.tsv"}, fallbackServicePointId=POINT),
    task(
        "marc", "MARCImportTask", files=[{"fileName": "bibs.mrc"}], noProgress=True, batchSize=100,
        importProfileName="Default - Create instance and SRS MARC Bib",
    ),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory, library):
    base = tmp_path_factory.mktemp("migration")
    (base / ".gitignore").write_text("results/\narchive/\nsource_data/\n")
    iteration = base / "iterations" / "one"
    results = iteration / "results"
    for folder in [results, base / "mapping_files", *(iteration / "source_data" / it for it in ["loans", "requests"])]:
        folder.mkdir(parents=True, exist_ok=True)
    for name, records in [
        ("instances", INSTANCES), ("holdings", HOLDINGS), ("items", ITEMS), ("users", USERS),
        ("organizations", ORGANIZATIONS), ("orders", ORDERS),
    ]:
        (results / f"{name}.json").write_text("".join(json.dumps(it) + "\n" for it in records))
    (results / "extradata.json").write_text("".join(f"{name}\t{json.dumps(it)}\n" for name, it in EXTRADATA))
    (iteration / "source_data" / "loans" / "loans.tsv").write_text(LOANS)
    (iteration / "source_data" / "requests" / "requests.tsv").write_text(REQUESTS)
    configuration = {
        "libraryInformation": {
            "gatewayUrl": library.url, "tenantId": library.tenant, "folioUsername": "admin",
            "folioPassword": library.password("admin"), "libraryName": "A library", "folioRelease": "sunflower",
            "addTimeStampToFileNames": False, "iterationIdentifier": "one", "logLevelDebug": False,
        },
        "migrationTasks": TASKS,
    }
    (base / "configuration.json").write_text(json.dumps(configuration))
    with folioclient.FolioClient(library.url, library.tenant, "admin", library.password("admin")) as client:
        # What a site sets up before it migrates.
        for name, value in [("localeSettings", {"timezone": "UTC"}), ("other_settings", {"prefPatronIdentifier": "barcode"})]:
            module = "ORG" if name == "localeSettings" else "CHECKOUT"
            entry = {"module": module, "configName": name, "enabled": True, "value": json.dumps(value)}
            client.folio_post("/configurations/entries", entry)
        term = {"id": uid(7, 1), "name": "Spring", "startDate": "2026-02-01", "endDate": "2026-06-01"}
        client.folio_post("/coursereserves/terms", term)
        # Without an owner of fees at an item's service point, nothing can be declared lost.
        desk = [{"value": POINT, "label": "Circ Desk 1"}]
        client.folio_post("/owners", {"id": uid(10, 3), "owner": "Desk", "servicePointOwner": desk})
        client.folio_post("/feefines", {"id": uid(10, 2), "feeFineType": "Damage", "ownerId": uid(10, 3)})
    return base


def done(base: Path, name: str) -> str:
    command = [
        sys.executable, "-m", "folio_migration_tools", str(base / "configuration.json"), name,
        "--base_folder_path", str(base), "--folio_password", "unused",
    ]
    ran = subprocess.run(command, cwd=base, capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout + ran.stderr


def test_a_library_moves_in(library, base):
    with folioclient.FolioClient(library.url, library.tenant, "admin", library.password("admin")) as client:

        def total(path: str, query: str = "cql.allRecords=1") -> int:
            return client.folio_get(path, query_params={"limit": 0, "query": query})["totalRecords"]

        for name in ["instances", "instances_again"]:
            done(base, name)
            assert total("/instance-storage/instances") == N
        for name, path in [("holdings", "/holdings-storage/holdings"), ("items", "/item-storage/items")]:
            done(base, name)
            assert total(path) == N
        done(base, "users")
        assert total("/users", "username=u*") == N
        done(base, "organizations")
        assert total("/organizations/organizations") == 1
        done(base, "orders")
        assert total("/orders/composite-orders") == 1
        done(base, "extradata")
        assert total("/preceding-succeeding-titles") == 1
        assert total("/coursereserves/courses") == 1
        assert total("/accounts") == 1
        done(base, "loans")
        loans = client.folio_get("/circulation/loans", "loans", query_params={"limit": 100})
        found = {it["item"]["barcode"]: (it["item"]["status"]["name"], it["dueDate"][:10]) for it in loans}
        assert found == {
            "i1": ("Checked out", "2030-02-01"), "i2": ("Declared lost", "2030-02-02"),
            "i3": ("Claimed returned", "2030-02-03"), "i4": ("Checked out", "2030-02-04"),
        }
        done(base, "requests")
        requests = client.folio_get("/circulation/requests", "requests", query_params={"limit": 100})
        assert sorted((it["item"]["barcode"], it["requestType"]) for it in requests) == [("i4", "Hold"), ("i6", "Page")]


@pytest.mark.skipif(not DATA.is_dir(), reason="no collection of records: PINAKES_TEST_DATA names one")
def test_marc_records_move_in(library, base):
    file = DATA / "marc" / "bib" / "folio-perf-serialset-1k.mrc"
    (base / "iterations" / "one" / "results" / "bibs.mrc").write_bytes(file.read_bytes())
    with folioclient.FolioClient(library.url, library.tenant, "admin", library.password("admin")) as client:
        before = client.folio_get("/source-storage/records?limit=0")["totalRecords"]
        done(base, "marc")
        assert before < client.folio_get("/source-storage/records?limit=0")["totalRecords"]
