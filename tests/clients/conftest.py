"""A server with a fresh catalogue, for all tests of a run."""

import signal
import subprocess
from pathlib import Path

import pytest
import requests
from running import PATIENCE_S, PINAKES, printed_url

HERE = Path(__file__).parent


class Server:
    """A running server and the accounts that it knows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.v3 = f"{url}/api/v3"
        self.v4 = f"{url}/api/v4"

    @staticmethod
    def password(username: str) -> str:
        return f"{username}-of-tests"

    def token(self, username: str) -> str:
        answer = requests.post(
            f"{self.v3}/auth/login",
            json={"username": username, "password": self.password(username)},
            timeout=PATIENCE_S,
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def empty(self, collection: str) -> None:
        """Empties a collection, as suites that clean up in the database do."""
        answer = requests.delete(f"{self.v3}/testing/{collection}", timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text


def pinakes(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PINAKES, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


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
