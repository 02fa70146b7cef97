"""A running server with a catalogue, as used by SciCat's clients."""

import subprocess
from pathlib import Path

import requests
from running import PATIENCE_S, PINAKES

HERE = Path(__file__).parent


class Server:
    """A running server and its accounts."""

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
