"""pyDataverse: the life of a deposit."""

import json

import pytest
from deposits import dataset_json
from pyDataverse.api import DataAccessApi, MetricsApi, NativeApi, SearchApi
from pyDataverse.exceptions import ApiAuthorizationError
from pyDataverse.models import Datafile


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
    # The client's own function reads a member that answers to DELETE never have.
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
