"""pyDataverse: the life cycle of a deposit."""

import json

import pytest
import requests
from deposits import dataset_json
from pyDataverse.api import DataAccessApi, MetricsApi, NativeApi, SearchApi, SwordApi
from pyDataverse.exceptions import (
    ApiAuthorizationError,
    DataverseNotEmptyError,
    DataverseNotFoundError,
)
from pyDataverse.models import Datafile
from running import PATIENCE_S


@pytest.fixture
def api(site):
    return NativeApi(site.url, site.token)


def test_life_of_a_collection_and_its_dataset(site, api, tmp_path):
    made = api.create_dataverse(
        site.collection,
        json.dumps({"name": "Gauges", "alias": "gauges", "dataverseContacts": [{"contactEmail": "g@example.org"}]}),
    )
    assert made.status_code == 201
    assert api.get_dataverse("gauges").json()["data"]["name"] == "Gauges"
    assert api.publish_dataverse("gauges").status_code == 200

    pid = api.create_dataset("gauges", json.dumps(dataset_json("Gauge readings"))).json()["data"]["persistentId"]
    assert api.get_dataset_lock(pid).json()["data"] == []
    path = tmp_path / "gauge.txt"
    path.write_text("0.7\n")
    file = Datafile({"pid": pid, "filename": str(path), "description": "Readings", "label": "gauge.txt"})
    uploaded = api.upload_datafile(pid, str(path), file.json())
    assert uploaded.status_code == 200, uploaded.text
    number = uploaded.json()["data"]["files"][0]["dataFile"]["id"]

    edited = api.edit_dataset_metadata(
        pid, json.dumps({"fields": [{"typeName": "title", "value": "Gauge readings of 2026"}]}), replace=True
    )
    assert edited.status_code == 200, edited.text
    assert api.publish_dataset(pid, "major").status_code == 200
    latest = api.get_dataset(pid).json()["data"]["latestVersion"]
    assert latest["versionState"] == "RELEASED"
    assert latest["metadataBlocks"]["citation"]["fields"][0]["value"] == "Gauge readings of 2026"
    assert [it["label"] for it in api.get_datafiles_metadata(pid).json()["data"]] == ["gauge.txt"]
    assert DataAccessApi(site.url).get_datafile(number, is_pid=False).content == b"0.7\n"
    for exporter in ["ddi", "dcterms", "schema.org", "OAI_ORE", "Datacite", "dataverse_json"]:
        assert api.get_dataset_export(pid, exporter).status_code == 200, exporter
    found = SearchApi(site.url).search('title:"Gauge readings of 2026"', data_type="dataset").json()["data"]
    assert [it["global_id"] for it in found["items"]] == [pid]
    assert MetricsApi(site.url).total("datasets").json()["data"]["count"] >= 1
    assert {it["type"] for it in api.get_dataverse_contents(site.collection).json()["data"]} >= {"dataverse"}


def test_a_draft_is_nobody_elses(site, api):
    pid = site.dataset()
    other = NativeApi(site.url, site.account("onlooker"))
    with pytest.raises(ApiAuthorizationError):
        other.get_dataset(pid)
    assert SearchApi(site.url).search(f'"{pid}"').json()["data"]["total_count"] == 0
    assert api.create_dataset_private_url(pid).status_code == 200
    token = api.get_dataset_private_url(pid).json()["data"]["token"]
    assert NativeApi(site.url, token).get_dataset(pid).status_code == 200
    # The client's own function reads a member that answers to DELETE never contain.
    path = f"{api.base_url_api_native}/datasets/:persistentId/privateUrl/?persistentId={pid}"
    assert api.delete_request(path, auth=True).status_code == 200
    assert api.delete_dataset(pid).status_code == 200


def test_vocabulary_and_account(site, api):
    assert [it["name"] for it in api.get_metadatablocks().json()["data"]][0] == "citation"
    assert api.get_metadatablock("citation").json()["data"]["fields"]["title"]["isRequired"] is True
    assert api.get_info_version().json()["data"]["version"].startswith("6.")
    assert api.get_user().json()["data"]["identifier"] == "@depositor"
    assert api.get_dataverse_facets("root").json()["data"] == [
        "authorName", "subject", "keywordValue", "dateOfDeposit",
    ]


def test_files_of_a_dataset(site, api, tmp_path):
    """The client's operations on a file, and on a file to which others request access."""
    site.post("/api/dataverses/root", 201, json={
        "name": "Weirs", "alias": "weirs", "dataverseContacts": [{"contactEmail": "w@example.org"}],
    })
    assert api.publish_dataverse("weirs").status_code == 200
    pid = api.create_dataset("weirs", json.dumps(dataset_json("Weir readings"))).json()["data"]["persistentId"]
    table = tmp_path / "weir.csv"
    table.write_text("day,level\n1,0.7\n2,0.9\n")

    def upload(path, **described):
        file = Datafile({"pid": pid, "filename": str(path), "label": path.name, **described})
        answer = api.upload_datafile(pid, str(path), file.json())
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]["files"][0]["dataFile"]["id"]

    number = upload(table, description="Readings")
    access = DataAccessApi(site.url, site.token)
    assert api.get_datafile_metadata(number, is_draft=True).json()["label"] == "weir.tab"
    described = json.dumps({"description": "Daily readings", "categories": ["Data"]})
    # The client calls curl for this.
    assert api.update_datafile_metadata(number, described).returncode == 0
    assert api.get_datafile_metadata(number, is_draft=True).json()["description"] == "Daily readings"
    assert access.get_datafile(number, is_pid=False).content == b"day\tlevel\n1\t0.7\n2\t0.9\n"
    assert access.get_datafile(number, data_format="original", is_pid=False).content == table.read_bytes()
    assert access.get_datafile(number, no_var_header=True, is_pid=False).content == b"1\t0.7\n2\t0.9\n"
    assert access.get_datafiles(str(number)).content[:2] == b"PK"
    assert access.get_datafile_bundle(number).content[:2] == b"PK"
    assert api.redetect_file_type(number, dry_run=True).json()["data"]["dryRun"] is True
    assert api.reingest_datafile(number).status_code == 403
    assert api.uningest_datafile(number).status_code == 403

    note = tmp_path / "note.txt"
    note.write_text("Closed in May.\n")
    kept = upload(note)
    # The client's own function sends no body, but the original requires one.
    assert api.restrict_datafile(kept).status_code == 400

    def restrict(number):
        return requests.put(
            f"{site.url}/api/files/{number}/restrict", data="true",
            headers={"X-Dataverse-key": site.token}, timeout=PATIENCE_S,
        )

    assert restrict(kept).status_code == 200
    assert api.publish_dataset(pid, "major").status_code == 200
    newer = tmp_path / "newer.txt"
    newer.write_text("Closed in June.\n")
    replaced = api.replace_datafile(kept, str(newer), json.dumps({"label": "note.txt"}), is_filepid=False)
    assert replaced.status_code == 200, replaced.text
    assert api.publish_dataset(pid, "major").status_code == 200

    number = replaced.json()["data"]["files"][0]["dataFile"]["id"]
    assert restrict(number).status_code == 200
    assert api.publish_dataset(pid, "major").status_code == 200
    visitor = DataAccessApi(site.url, site.account("visitor"))
    assert visitor.get_datafile(number, is_pid=False).status_code == 403
    assert visitor.request_access(number).status_code == 200
    asking = access.list_file_access_requests(number).json()["data"]
    assert [it["identifier"] for it in asking] == ["@visitor"]
    assert access.grant_file_access(number, "@visitor").status_code == 200
    assert visitor.get_datafile(number, is_pid=False).content == newer.read_bytes()


def test_versions_roles_and_removal(site, api):
    pid = api.create_dataset(site.collection, json.dumps(dataset_json("Sluices"))).json()["data"]["persistentId"]
    assert [it["versionState"] for it in api.get_dataset_versions(pid).json()["data"]] == ["DRAFT"]
    assert api.get_dataset_version(pid, ":draft").json()["data"]["versionState"] == "DRAFT"
    assert [it["_roleAlias"] for it in api.get_dataset_assignments(pid).json()["data"]] == ["contributor"]
    assert [it["_roleAlias"] for it in api.get_dataverse_assignments(site.collection).json()["data"]] == ["admin"]
    assert api.get_dataverse_roles(site.collection, auth=True).json()["data"] == []
    assert api.show_role(1).json()["data"]["alias"] == "admin"
    assert api.dataverse_id2alias(1) == "root"
    tree = api.get_children("root", children_types=["dataverses", "datasets"])
    assert site.collection in [it.get("dataverse_alias") for it in tree]
    assert api.delete_dataset(pid).status_code == 200

    pid = api.create_dataset(site.collection, json.dumps(dataset_json("Locks"))).json()["data"]["persistentId"]
    assert api.publish_dataset(pid, "major").status_code == 200
    with pytest.raises(ApiAuthorizationError):
        api.destroy_dataset(pid)
    overseer = NativeApi(site.url, site.superuser("destroyer"))
    assert overseer.destroy_dataset(pid).status_code == 200
    assert api.get_dataset(pid).status_code == 404
    site.dataset()
    with pytest.raises(DataverseNotEmptyError):
        api.delete_dataverse(site.collection)
    with pytest.raises(DataverseNotFoundError):
        api.delete_dataverse("nothing")


def test_tokens_and_metrics(site):
    api = NativeApi(site.url, site.account("renewer"))
    assert "expires on" in api.get_user_api_token_expiration_date().json()["data"]["message"]
    renewed = api.recreate_user_api_token().json()["data"]["message"].split(" is ")[1].split()[0]
    api = NativeApi(site.url, renewed)
    assert api.get_user().json()["data"]["identifier"] == "@renewer"
    assert api.get_info_server().status_code == 200
    assert api.get_info_api_terms_of_use().status_code == 200
    assert api.delete_user_api_token().status_code == 200
    with pytest.raises(ApiAuthorizationError):
        api.get_user()
    metrics = MetricsApi(site.url)
    for answer in [
        metrics.total("downloads"), metrics.total("files", "2026-01"), metrics.past_days("datasets", "30"),
        metrics.get_dataverses_by_subject(), metrics.get_dataverses_by_category(),
        metrics.get_datasets_by_subject(), metrics.get_datasets_by_data_location("local"),
    ]:
        assert answer.json()["status"] == "OK", answer.text
    assert b"collection" in SwordApi(site.url, api_token=site.token).get_service_document().content
