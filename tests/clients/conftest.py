"""A server with a fresh catalogue, for all tests of a run."""

import pytest
from catalogue import HERE, Server, pinakes
from running import serving


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    data = str(tmp_path_factory.mktemp("catalogue") / "data")
    imported = pinakes("user", "import", "--data", data, str(HERE / "functionalAccounts.json"))
    assert imported.returncode == 0, imported.stderr
    with serving("--data", data, "--config", HERE / "pinakes.toml", "--testing") as url:
        yield Server(url)
    checked = pinakes("check", "--data", data)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture(autouse=True)
def fresh(server):
    """Empties the catalogue before each test."""
    yield
    for collection in [
        "Dataset", "OrigDatablock", "Datablock", "Attachment", "Sample", "Proposal", "Instrument", "PublishedData",
    ]:
        server.empty(collection)
