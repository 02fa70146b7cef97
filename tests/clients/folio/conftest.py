"""A server with a library, for the FOLIO clients: a tenant of its own, with accounts by role."""

import pathlib
import signal
import subprocess

import pytest
from running import PATIENCE_S, PINAKES, printed_url

TENANT = "library"
SITE = pathlib.Path(__file__).parent.parent / "pinakes.toml"
ROLES = ["admin", "librarian", "desk", "reader"]


class Library:
    """A running server with a tenant for FOLIO's clients."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tenant = TENANT

    @staticmethod
    def password(username: str) -> str:
        return f"{username}-of-tests"


def pinakes(*arguments: str, given: str = "") -> None:
    done = subprocess.run(
        [PINAKES, *arguments], input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr


# For each file of tests anew: they count what is there.
@pytest.fixture(scope="module")
def library(tmp_path_factory):
    data = str(tmp_path_factory.mktemp("folio") / "data")
    pinakes("tenant", "add", TENANT, "--data", data)
    for role in ROLES:
        pinakes(
            "user", "add", role, "--group", role, "--tenant", TENANT, "--data", data,
            given=Library.password(role) + "\n",
        )
    process = subprocess.Popen(
        [PINAKES, "serve", "--config", SITE, "--data", data, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Library(printed_url(process))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, errors
    pinakes("check", "--data", data)


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is emptied between these tests: each takes away what it made."""
