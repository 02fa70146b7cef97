"""A server with Dataverse's interface, a published collection and a depositor."""

import pathlib
import subprocess
import uuid

import pytest
import requests
from deposits import dataset_json
from running import PATIENCE_S, PINAKES, serving

SITE = pathlib.Path(__file__).parent.parent / "pinakes.toml"
KEY = "of-tests"


class Site:
    """A running server, with the token of a depositor who owns the collection `tides`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = self.account("depositor")
        self.collection = "tides"
        body = {
            "name": "Tides",
            "alias": self.collection,
            "dataverseContacts": [{"contactEmail": "tides@example.org"}],
        }
        self.post("/api/dataverses/root", 201, json=body)
        self.post(f"/api/dataverses/{self.collection}/actions/:publish", 200)

    def account(self, name: str) -> str:
        """Creates an account and returns its token."""
        body = {"firstName": "Ada", "lastName": "Gull", "userName": name, "email": f"{name}@example.org"}
        answer = requests.post(
            f"{self.url}/api/builtin-users?key={KEY}&password={name}-of-tests", json=body, timeout=PATIENCE_S
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]["apiToken"]

    def superuser(self, name: str) -> str:
        """Creates a superuser and returns its token."""
        token = self.account(name)
        answer = requests.put(f"{self.url}/api/admin/superuser/{name}", data="true", timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text
        return token

    def post(self, path: str, status: int, **arguments) -> dict:
        answer = requests.post(
            self.url + path, headers={"X-Dataverse-key": self.token}, timeout=PATIENCE_S, **arguments
        )
        assert answer.status_code == status, answer.text
        return answer.json()["data"]

    def get(self, path: str, token: str | None = None, status: int = 200) -> requests.Response:
        headers = {"X-Dataverse-key": token} if token else {}
        answer = requests.get(self.url + path, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == status, answer.text
        return answer

    def dataset(self) -> str:
        """Creates a draft and returns its persistent identifier."""
        path = f"/api/dataverses/{self.collection}/datasets"
        return self.post(path, 201, json=dataset_json(f"Tides {uuid.uuid4()}"))["persistentId"]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    data = str(tmp_path_factory.mktemp("dataverse") / "data")
    with serving("--config", SITE, "--data", data) as url:
        yield Site(url)
    checked = subprocess.run(
        [PINAKES, "check", "--data", data], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
