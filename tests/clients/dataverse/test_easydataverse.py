"""easyDataverse: classes generated from the metadata blocks, a dataset from them, and the dataset read back."""

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


def test_a_dataset_is_changed(site, tmp_path):
    dataverse = Dataverse(server_url=site.url, api_token=site.token)
    dataset = dataverse.create_dataset()
    dataset.citation.title = "Currents by easyDataverse"
    dataset.citation.subject = ["Other", "Physics"]
    dataset.citation.add_author(name="Gull, Ada")
    dataset.citation.add_dataset_contact(name="Gull, Ada", email="tides@example.org")
    dataset.citation.add_ds_description(value="Hourly.", date="2026-01-31")
    dataset.citation.add_keyword(value="tide")
    dataset.geospatial.add_geographic_coverage(country="Norway", city="Bergen")
    pid = dataset.upload(dataverse_name=site.collection)

    read = dataverse.load_dataset(pid=pid, version="latest", filedir=str(tmp_path))
    assert sorted(read.citation.subject) == ["Other", "Physics"]
    assert [it.value for it in read.citation.keyword] == ["tide"]
    read.citation.title = "Currents, corrected"
    read.citation.keyword[0].value = "current"
    added = tmp_path / "currents.txt"
    added.write_text("0.3\n")
    read.add_file(local_path=str(added))
    read.update()

    again = dataverse.load_dataset(pid=pid, version="latest", filedir=str(tmp_path / "again"))
    assert again.citation.title == "Currents, corrected"
    assert [it.value for it in again.citation.keyword] == ["current"]
    assert (tmp_path / "again" / "currents.txt").read_text() == "0.3\n"
