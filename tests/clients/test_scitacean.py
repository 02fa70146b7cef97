"""scitacean: upload a dataset with files and an attachment, find it, download it again, and further operations."""

from datetime import datetime, timezone

import pytest
import requests
from scitacean import Attachment, AuthError, Client, Dataset, File, Sample, ScicatCommError, Thumbnail
from scitacean.client import ScicatClient
from scitacean.model import UploadProposal
from scitacean.transfer.copy import CopyFileTransfer


def client(server, username, transfer=None):
    return Client.from_credentials(
        url=server.v3,
        username=username,
        password=server.password(username),
        file_transfer=transfer,
        allow_http=True,
    )


def dataset(kind="raw", **fields):
    return Dataset(
        **{
            "type": kind,
            "name": "Silica spheres",
            "owner": "Ada Sample",
            "owner_group": "group1",
            "access_groups": ["group3"],
            "contact_email": "ada@example.org",
            "creation_location": "/DEMO/SAXS-1",
            "creation_time": datetime(2026, 3, 2, 9, 5, 10, tzinfo=timezone.utc),
            "principal_investigators": ["Ada Sample"],
            "meta": {
                "temperature": {"value": 20, "unit": "celsius"},
                "wavelength": {"value": 1.2398, "unit": "angstrom"},
                "operator": "Ada",
            },
            **fields,
        }
    )


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "measured"
    folder.mkdir()
    for number in range(3):
        (folder / f"frame_{number}.txt").write_text(f"frame {number}\n" * (number + 1))
    return folder


def test_a_dataset_goes_up_with_files_and_comes_back(server, files, tmp_path):
    remote = tmp_path / "remote"
    remote.mkdir()
    transfer = CopyFileTransfer(source_folder=str(remote / "run7"))
    with_files = client(server, "user1", transfer)
    measured = dataset(keywords=["SAXS", "silica"])
    measured.add_files(*(File.from_local(it, remote_path=it.name) for it in sorted(files.iterdir())))
    measured.attachments = [
        Attachment(caption="rings", owner_group="group1", thumbnail=Thumbnail(mime="image/png", data=b"\x89PNG..."))
    ]

    finished = with_files.upload_new_dataset_now(measured)

    assert str(finished.pid).startswith("PID.prefix/")
    assert finished.created_by == "user1"
    assert finished.number_of_files == 3

    found = with_files.get_dataset(finished.pid, attachments=True)
    assert found.name == "Silica spheres"
    assert found.keywords == ["SAXS", "silica"]
    assert found.number_of_files == 3
    assert found.size == sum(it.stat().st_size for it in files.iterdir())
    assert found.meta["temperature"] == {"value": 20, "unit": "celsius", "valueSI": 293.15, "unitSI": "K"}
    assert found.meta["wavelength"]["unitSI"] == "m"
    assert found.meta["wavelength"]["valueSI"] == pytest.approx(1.2398e-10)
    assert [it.caption for it in found.attachments] == ["rings"]
    assert found.attachments[0].thumbnail.decoded_data() == b"\x89PNG..."
    assert found.created_at is not None and found.updated_by == "user1"

    local = with_files.download_files(found, target=tmp_path / "back")
    texts = {it.remote_path.posix: it.local_path.read_text() for it in local.files}
    assert texts == {it.name: it.read_text() for it in files.iterdir()}


@pytest.mark.parametrize("kind", ["raw", "derived", "custom"])
def test_every_type_is_taken(server, kind):
    api = client(server, "user1").scicat
    extra = {"used_software": ["reduction 2.1"]} if kind == "derived" else {}
    model = dataset(kind, source_folder="/data/x", **extra).make_upload_model()
    api.validate_dataset_model(model)
    made = api.create_dataset_model(model)
    assert made.type == kind
    assert api.get_dataset_model(made.pid).sourceFolder == "/data/x"


def test_queries_find_what_they_should(server):
    api = client(server, "user1").scicat
    for number in range(4):
        fields = {"name": f"run {number}", "proposal_ids": [f"p{number % 2}"], "source_folder": f"/data/{number}"}
        api.create_dataset_model(dataset(**fields).make_upload_model())
    found = api.query_datasets({"proposalIds": ["p1"]}, order="creationTime:desc")
    assert sorted(it.datasetName for it in found) == ["run 1", "run 3"]
    assert len(api.query_datasets({"type": "raw"}, limit=3, order="createdAt:desc")) == 3
    assert api.query_datasets({"datasetName": "no such"}) == []
    # Other users cannot see it.
    assert client(server, "user2").scicat.query_datasets({"type": "raw"}) == []


def test_who_may_not_is_told(server):
    user1, user2 = client(server, "user1").scicat, client(server, "user2").scicat
    made = user1.create_dataset_model(dataset(source_folder="/data/x").make_upload_model())
    with pytest.raises(ScicatCommError):
        user2.get_dataset_model(made.pid)
    with pytest.raises(ScicatCommError):
        user2.create_dataset_model(dataset(source_folder="/data/x").make_upload_model())
    with pytest.raises(ScicatCommError):
        ScicatClient.without_login(url=server.v3, allow_http=True).get_dataset_model(made.pid)
    with pytest.raises(AuthError):
        Client.from_credentials(url=server.v3, username="user1", password="wrong", allow_http=True)


def test_what_is_published_is_read_by_anyone(server):
    api = client(server, "user1").scicat
    made = api.create_dataset_model(dataset(source_folder="/data/x", is_published=True).make_upload_model())
    anyone = ScicatClient.without_login(url=server.v3, allow_http=True)
    assert anyone.get_dataset_model(made.pid).datasetName == "Silica spheres"


def test_samples(server):
    user1 = client(server, "user1")
    sample = Sample(
        sample_name="Silica, 25 nm",
        owner="Ada Sample",
        owner_group="group1",
        sample_characteristics={"diameter": {"value": 50.6, "unit": "nm"}},
    )
    made = user1.upload_new_sample_now(sample)
    assert made.sample_id and made.sample_name == "Silica, 25 nm"
    found = user1.get_sample(made.sample_id)
    assert found.sample_characteristics["diameter"]["unitSI"] == "m"


def test_proposals_and_instruments(server):
    ingestor, admin = client(server, "ingestor"), server.token("admin")
    proposal = UploadProposal(
        proposalId="20260001", title="Warm spheres", email="ada@example.org", ownerGroup="group1"
    )
    ingestor.scicat.create_proposal_model(proposal)
    assert client(server, "user1").get_proposal("20260001").title == "Warm spheres"

    body = {"uniqueName": "DEMO-SAXS-1", "name": "SAXS-1", "customMetadata": {"detector": "2D"}}
    answer = requests.post(
        f"{server.v3}/instruments", json=body, headers={"Authorization": f"Bearer {admin}"}, timeout=30
    )
    assert answer.status_code == 201, answer.text
    pid = answer.json()["pid"]
    assert ingestor.scicat.get_instrument_model(pid).name == "SAXS-1"
    assert [it.pid for it in ingestor.scicat.get_all_instrument_models()] == [pid]
