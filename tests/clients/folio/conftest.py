"""A server with a library, for the FOLIO clients: a separate tenant, with accounts by role."""

import pathlib
import subprocess

import pytest
from running import PATIENCE_S, PINAKES, serving

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


# Created for each test file, as the tests count the existing records.
@pytest.fixture(scope="module")
def library(tmp_path_factory):
    data = str(tmp_path_factory.mktemp("folio") / "data")
    pinakes("tenant", "add", TENANT, "--data", data)
    for role in ROLES:
        pinakes(
            "user", "add", role, "--group", role, "--tenant", TENANT, "--data", data,
            given=Library.password(role) + "\n",
        )
    with serving("--config", SITE, "--data", data) as url:
        yield Library(url)
    pinakes("check", "--data", data)


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is emptied between these tests: each deletes what it created."""
