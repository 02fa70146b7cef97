"""A server with a fresh catalogue, for all tests of a run."""

import signal
import subprocess

import pytest
from catalogue import HERE, Server, pinakes
from running import PATIENCE_S, PINAKES, printed_url


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    data = str(tmp_path_factory.mktemp("catalogue") / "data")
    imported = pinakes("user", "import", "--data", data, str(HERE / "functionalAccounts.json"))
    assert imported.returncode == 0, imported.stderr
    process = subprocess.Popen(
        [PINAKES, "serve", "--data", data, "--config", str(HERE / "pinakes.toml")]
        + ["--listen", "127.0.0.1:0", "--testing"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Server(printed_url(process))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, errors
    checked = pinakes("check", "--data", data)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture(autouse=True)
def fresh(server):
    """Each test finds an empty catalogue."""
    yield
    for collection in [
        "Dataset", "OrigDatablock", "Datablock", "Attachment", "Sample", "Proposal", "Instrument", "PublishedData",
    ]:
        server.empty(collection)
