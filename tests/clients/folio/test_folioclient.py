"""folioclient: log in, read, page, write and delete; reference data; refused requests."""

import folioclient
import httpx
import pytest

BOOK = "1a54b431-2e4f-452d-9cae-9cee66c9a892"
CAN_CIRCULATE = "2b94c631-fca9-4892-a730-03ee529ffe27"
TEXT = "6312d172-f0cf-40f6-b27d-9fa8feaf332f"
MAIN_LIBRARY = "fcd64ce1-6995-48f0-840e-89ffa2288371"
FOLIO_SOURCE = "f32d531e-df79-46b3-8932-cdd35f7a2264"


@pytest.fixture
def client(library):
    with folioclient.FolioClient(
        library.url, library.tenant, "admin", library.password("admin")
    ) as it:
        yield it


def test_wrong_password_is_refused(library):
    with pytest.raises(httpx.HTTPError):
        folioclient.FolioClient(library.url, library.tenant, "admin", "wrong").login()


def test_session(client, library):
    assert client.access_token
    assert client.access_token_expires is not None
    assert not client.is_ecs
    user = client.folio_get("/bl-users/by-username/admin", "user")
    assert client.current_user == user["id"]
    assert any(it.startswith("mod-inventory-storage-") for it in client.module_versions)


def test_a_second_login(client):
    client.login()
    assert client.folio_get("/groups", "usergroups", "group==staff")[0]["group"] == "staff"


@pytest.mark.parametrize(
    "name",
    [
        "identifier_types", "contributor_types", "contrib_name_types", "instance_types", "instance_formats",
        "alt_title_types", "locations", "service_points", "electronic_access_relationships",
        "instance_note_types", "class_types", "holding_note_types", "call_number_types", "holdings_types",
        "modes_of_issuance", "authority_source_files", "subject_types", "statistical_codes",
    ],
)
def test_reference_data(client, name):
    records = getattr(client, name)
    assert records, name
    ids = [it["id"] for it in records]
    assert len(ids) == len(set(ids))


def test_locations_by_code(client):
    assert {it["code"]: it["id"] for it in client.locations}["KU/CC/DI/M"] == MAIN_LIBRARY


def test_inventory(client):
    instance = client.folio_post(
        "/instance-storage/instances", {"source": "FOLIO", "title": "A day's work", "instanceTypeId": TEXT}
    )
    assert instance["hrid"].startswith("in000")
    holdings = client.folio_post(
        "/holdings-storage/holdings",
        {"instanceId": instance["id"], "permanentLocationId": MAIN_LIBRARY, "sourceId": FOLIO_SOURCE},
    )
    item = client.folio_post(
        "/item-storage/items",
        {
            "holdingsRecordId": holdings["id"], "materialTypeId": BOOK, "permanentLoanTypeId": CAN_CIRCULATE,
            "status": {"name": "Available"}, "barcode": "day-1",
        },
    )
    found = client.folio_get("/inventory/items", "items", 'barcode=="day-1"')
    assert [it["title"] for it in found] == ["A day's work"]

    item["volume"] = "v.2"
    assert client.folio_put(f"/item-storage/items/{item['id']}", item) is None
    with pytest.raises(httpx.HTTPStatusError) as refused:
        client.folio_put(f"/item-storage/items/{item['id']}", item)
    assert refused.value.response.status_code == 409
    assert "optimistic locking" in refused.value.response.text

    with pytest.raises(httpx.HTTPStatusError) as refused:
        client.folio_delete(f"/instance-storage/instances/{instance['id']}")
    assert "is still referenced from table" in refused.value.response.text
    for path in [f"/item-storage/items/{item['id']}", f"/holdings-storage/holdings/{holdings['id']}"]:
        assert client.folio_delete(path) is None
    assert client.folio_delete(f"/instance-storage/instances/{instance['id']}") is None
    assert client.folio_get("/item-storage/items", "items", 'barcode=="day-1"') == []


def test_all_by_pages(client):
    made = [
        {"source": "FOLIO", "title": f"page {n}", "instanceTypeId": TEXT} for n in range(57)
    ]
    client.folio_post("/instance-storage/batch/synchronous?upsert=true", {"instances": made})
    by_id = list(client.folio_get_all("/instance-storage/instances", "instances", limit=10))
    assert len(by_id) == 57
    assert len({it["id"] for it in by_id}) == 57
    by_offset = list(
        client.folio_get_all("/instance-storage/instances", "instances", 'title="page*" sortBy title', 10)
    )
    assert [it["title"] for it in by_offset] == sorted(it["title"] for it in made)
    client.folio_delete("/instance-storage/instances", query_params={"query": 'title="page"'})
    assert client.folio_get("/instance-storage/instances")["totalRecords"] == 0


def test_users(client, library):
    group = client.folio_get("/groups", "usergroups", "group==faculty")[0]
    user = client.folio_post(
        "/users",
        {"username": "ann", "barcode": "u-1", "active": True, "patronGroup": group["id"],
         "personal": {"lastName": "Example", "firstName": "Ann"}},
    )
    with pytest.raises(httpx.HTTPStatusError) as refused:
        client.folio_post("/users", {"username": "bea", "barcode": "u-1", "personal": {"lastName": "Other"}})
    assert refused.value.response.status_code == 422
    client.folio_post("/authn/credentials", {"userId": user["id"], "password": "secret"})
    with folioclient.FolioClient(library.url, library.tenant, "ann", "secret") as ann:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            ann.folio_get("/users")
        assert refused.value.response.status_code == 403
    user["personal"]["lastName"] = "Changed"
    client.folio_put(f"/users/{user['id']}", user)
    assert client.folio_get(f"/users/{user['id']}")["personal"]["lastName"] == "Changed"
    assert client.folio_delete(f"/users/{user['id']}") is None


def test_authorities(client):
    lcnaf = next(it for it in client.authority_source_files if "n" in it["codes"])
    made = client.folio_post(
        "/authority-storage/authorities",
        {"source": "FOLIO", "naturalId": "n79000001", "sourceFileId": lcnaf["id"],
         "personalName": "Example, Ann, 1835-1910", "sftPersonalName": ["Sample, Ann"]},
    )
    rows = client.folio_get("/search/authorities", "authorities", 'keyword all "sample"')
    assert [(it["id"], it["authRefType"]) for it in rows] == [(made["id"], "Reference")]
    client.folio_delete(f"/authority-storage/authorities/{made['id']}")
    assert client.folio_get("/authority-storage/authorities")["totalRecords"] == 0


def test_a_reader_reads(library):
    with folioclient.FolioClient(
        library.url, library.tenant, "reader", library.password("reader")
    ) as reader:
        assert reader.folio_get("/material-types", "mtypes", "name==book")[0]["id"] == BOOK
        with pytest.raises(httpx.HTTPStatusError) as refused:
            reader.folio_post("/material-types", {"name": "scroll", "source": "local"})
        assert refused.value.response.status_code == 403
        assert "requires permission: inventory-storage.material-types.item.post" in refused.value.response.text
