"""easyDataverse: classes made of the metadata blocks, a dataset from them, and the dataset read back."""

from easyDataverse import Dataverse


def test_a_dataset_goes_there_and_back(site, tmp_path):
    path = tmp_path / "tides.txt"
    path.write_text("0.7\n")
    dataverse = Dataverse(server_url=site.url, api_token=site.token)
    dataset = dataverse.create_dataset()
    dataset.citation.title = "Tides by easyDataverse"
    dataset.citation.subject = ["Other"]
    dataset.citation.add_author(name="Gull, Ada", affiliation="Tide Office")
    dataset.citation.add_dataset_contact(name="Gull, Ada", email="tides@example.org")
    dataset.citation.add_ds_description(value="Hourly.")
    dataset.add_file(local_path=str(path), dv_dir="raw")
    pid = dataset.upload(dataverse_name=site.collection)

    read = dataverse.load_dataset(pid=pid, version="latest", filedir=str(tmp_path / "back"))
    assert read.citation.title == "Tides by easyDataverse"
    assert read.citation.author[0].name == "Gull, Ada"
    assert [it.directory_label for it in read.files] == ["raw"]
