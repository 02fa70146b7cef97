"""pyscicat: create, block, attach, find, update, publish and delete."""

from urllib.parse import quote_plus

import pytest
import requests
from pyscicat.client import ScicatClient, ScicatCommError, ScicatLoginError
from pyscicat.model import (
    Attachment,
    CreateDatasetOrigDatablockDto,
    DataFile,
    DerivedDataset,
    Instrument,
    Proposal,
    RawDataset,
    Sample,
)


def client(server, username):
    return ScicatClient(server.v3, username=username, password=server.password(username))


def raw(**fields):
    return RawDataset(
        **{
            "owner": "Ada Sample",
            "contactEmail": "ada@example.org",
            "creationLocation": "/DEMO/SAXS-1",
            "creationTime": "2026-03-02T09:05:10Z",
            "datasetName": "Silica spheres",
            "type": "raw",
            "principalInvestigator": "Ada Sample",
            "ownerGroup": "group1",
            "accessGroups": ["group3"],
            "sourceFolder": "/data/p1234/run7/",
            "scientificMetadata": {"temperature": {"value": 20, "unit": "celsius"}},
            **fields,
        }
    )


def get(server, path, username):
    headers = {"Authorization": f"Bearer {server.token(username)}"}
    answer = requests.get(f"{server.v3}/{path}", headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_raw_dataset_with_its_block_and_picture(server):
    user1 = client(server, "user1")
    pid = user1.datasets_create(raw())
    assert pid.startswith("PID.prefix/")
    files = [DataFile(path=f"frame_{n}.h5", size=1000 + n, time="2026-03-02T09:05:10Z") for n in range(5)]
    block = CreateDatasetOrigDatablockDto(size=sum(it.size for it in files), dataFileList=files)
    made = user1.datasets_origdatablock_create(pid, block)
    assert made["datasetId"] == pid and len(made["dataFileList"]) == 5
    picture = "data:image/png;base64,iVBORw0KGgo="
    attached = user1.datasets_attachment_create(
        Attachment(datasetId=pid, thumbnail=picture, caption="rings", ownerGroup="group1", accessGroups=[])
    )
    assert attached["caption"] == "rings"

    found = user1.datasets_get_one(pid)
    assert found["sourceFolder"] == "/data/p1234/run7"
    assert found["numberOfFiles"] == 5 and found["size"] == 5010
    assert found["creationTime"] == "2026-03-02T09:05:10.000Z"
    assert found["scientificMetadata"]["temperature"]["valueSI"] == 293.15
    assert found["principalInvestigator"] == "Ada Sample"
    blocks = user1.datasets_origdatablocks_get_one(pid)
    assert [it["path"] for it in blocks[0]["dataFileList"]] == [f"frame_{n}.h5" for n in range(5)]
    assert get(server, f"datasets/{quote_plus(pid)}/thumbnail", "user1") == {"thumbnail": picture}


def test_a_derived_dataset(server):
    user1 = client(server, "user1")
    source = user1.datasets_create(raw())
    derived = DerivedDataset(
        owner="Ada Sample",
        contactEmail="ada@example.org",
        creationTime="2026-03-03T16:20:00Z",
        datasetName="reduced",
        type="derived",
        investigator="Ada Sample",
        inputDatasets=[source],
        usedSoftware=["reduction 2.1"],
        ownerGroup="group1",
        accessGroups=[],
        sourceFolder="/data/p1234/reduced",
    )
    found = user1.datasets_get_one(user1.datasets_create(derived))
    assert found["inputDatasets"] == [source] and found["investigator"] == "Ada Sample"


def test_finding(server):
    user1 = client(server, "user1")
    pids = [user1.datasets_create(raw(datasetName=f"run {n}", proposalId=f"p{n % 2}")) for n in range(4)]
    by_filter = user1.datasets_get_many({"proposalId": "p1"})
    assert sorted(it["pid"] for it in by_filter) == sorted(pids[1::2])
    assert len(user1.datasets_get_many({"datasetName": {"like": "run [12]"}})) == 2
    by_query = user1.datasets_find(limit=3, query_fields={"type": "raw"})
    assert len(by_query) == 3
    assert [it["pid"] for it in user1.datasets_find(query_fields={"datasetName": "run 2"})] == [pids[2]]
    assert len(user1.datasets_find(query_fields={"text": "spheres"})) == 0
    assert client(server, "user2").datasets_find(query_fields={"type": "raw"}) == []


def test_updating_and_publishing(server):
    user1 = client(server, "user1")
    pid = user1.datasets_create(raw())
    headers = {"Authorization": f"Bearer {server.token('user1')}"}
    url = f"{server.v3}/datasets/{quote_plus(pid)}"
    patched = requests.patch(url, json={"keywords": ["SAXS"], "isPublished": True}, headers=headers, timeout=30)
    assert patched.status_code == 200, patched.text
    found = user1.datasets_get_one(pid)
    assert found["keywords"] == ["SAXS"] and found["updatedBy"] == "user1"
    assert requests.get(url, timeout=30).json()["isPublished"] is True

    ingestor = client(server, "ingestor")
    body = {
        "creator": ["Ada Sample"], "publisher": "Demo Light Source", "publicationYear": 2026, "title": "Spheres",
        "abstract": "Warm ones.", "dataDescription": "SAXS", "resourceType": "raw", "pidArray": [pid],
    }
    headers = {"Authorization": f"Bearer {server.token('ingestor')}"}
    made = requests.post(f"{server.v3}/publisheddata", json=body, headers=headers, timeout=30)
    assert made.status_code == 201, made.text
    doi = made.json()["doi"]
    assert [it["doi"] for it in ingestor.published_data_get_many({"doi": doi})] == [doi]


def test_deleting(server):
    user1, archivist = client(server, "user1"), client(server, "archivist")
    pid = user1.datasets_create(raw())
    with pytest.raises(ScicatCommError):
        user1.datasets_delete(pid)
    archivist.datasets_delete(pid)
    with pytest.raises(ScicatCommError):
        user1.datasets_get_one(pid)


def post(server, path, body, username):
    """Adds what pyscicat's models of samples and instruments lack: the names that version 5 of the API requires."""
    headers = {"Authorization": f"Bearer {server.token(username)}"}
    answer = requests.post(f"{server.v3}/{path}", json=body, headers=headers, timeout=30)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_samples(server):
    user1 = client(server, "user1")
    characteristics = {"T": {"value": 1, "unit": "mm"}}
    made = post(
        server,
        "samples",
        {"sampleName": "Silica", "ownerGroup": "group1", "sampleCharacteristics": characteristics},
        "user1",
    )
    found = user1.samples_get_one(made["sampleId"])
    assert found["sampleCharacteristics"]["T"]["valueSI"] == 0.001
    user1.samples_update(Sample(ownerGroup="group1", description="25 nm"), made["sampleId"])
    assert [it["description"] for it in user1.samples_get_many({"ownerGroup": "group1"})] == ["25 nm"]


def test_proposals(server):
    ingestor = client(server, "ingestor")
    proposal = Proposal(
        proposalId="20260002", title="Warm spheres", email="ada@example.org", ownerGroup="group1", accessGroups=[]
    )
    made = ingestor.proposals_create(proposal)
    assert ingestor.proposals_get_one(made)["title"] == "Warm spheres"
    assert client(server, "user1").proposals_get_one(made)["numberOfDatasets"] == 0


def test_instruments(server):
    admin = client(server, "admin")
    made = post(server, "instruments", {"name": "SAXS-1", "uniqueName": "DEMO-SAXS-1"}, "admin")
    assert admin.instruments_get_one(pid=made["pid"])["name"] == "SAXS-1"
    assert admin.instruments_get_one(name="SAXS")["name"] == "SAXS-1"
    admin.instruments_update(Instrument(name="SAXS-2", customMetadata={"a": 1}), made["pid"])
    assert admin.instruments_get_one(pid=made["pid"])["customMetadata"] == {"a": 1}


def test_a_wrong_password_is_refused(server):
    with pytest.raises(ScicatLoginError):
        ScicatClient(server.v3, username="user1", password="wrong")
