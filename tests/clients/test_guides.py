"""The guides for SciCat sites, followed: their commands are run unchanged and in order.

The places (`/srv/pinakes`, the port) are replaced and, as there is no MongoDB, so is `mongoexport`, by a program with the same
output.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
import requests
from catalogue import HERE, Server
from running import PATIENCE_S, PINAKES

DOCS = HERE.parent.parent / "docs"
# Content of a site's database: dates and ids as mongoexport writes them.
EXPORTED = {
    "Dataset": [
        {
            "_id": f"20.500.12345/{n}", "pid": f"20.500.12345/{n}", "type": "raw", "ownerGroup": "group1", "accessGroups": [],
            "owner": "o", "contactEmail": "a@b.ch", "sourceFolder": f"/data/{n}", "datasetName": f"run {n}", "size": 7,
            "creationTime": {"$date": "2020-01-15T08:00:00.000Z"}, "isPublished": n == 1, "principalInvestigator": "P I",
            "creationLocation": "/ESS", "createdBy": "ingestor", "updatedBy": "ingestor", "version": "3",
            "createdAt": {"$date": "2020-01-15T08:00:00.000Z"}, "updatedAt": {"$date": "2020-01-15T08:00:00.000Z"},
        }
        for n in range(1, 4)
    ],
    "Sample": [
        {
            "_id": {"$oid": "6b00e640a38974763ecd9ea4"}, "sampleId": "s1", "ownerGroup": "group1", "accessGroups": [],
            "sampleName": "Si", "isPublished": False, "createdBy": "a", "updatedBy": "a",
            "createdAt": {"$date": "2020-01-15T08:00:00.000Z"}, "updatedAt": {"$date": "2020-01-15T08:00:00.000Z"},
        }
    ],
}


def blocks(guide: str) -> list[str]:
    """Returns the indented blocks of a guide that are commands, in order."""
    text = (DOCS / guide).read_text()
    found = re.findall(r"(?:^(?:    |       ).*\n)+", text, re.M)
    return ["\n".join(line.strip() for line in it.splitlines()) for it in found]


class Machine:
    """A folder that represents a fresh machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "srv"
        tools = folder / "bin"
        tools.mkdir()
        (tools / "pinakes").symlink_to(Path(PINAKES).resolve())
        exported = folder / "exported.json"
        exported.write_text(json.dumps(EXPORTED))
        mongoexport = tools / "mongoexport"
        mongoexport.write_text(
            "#!/usr/bin/env python3\nimport json, sys\n"
            "arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
            f"records = json.load(open({str(exported)!r})).get(arguments['--collection'], [])\n"
            "open(arguments['--out'], 'w').writelines(json.dumps(it) + '\\n' for it in records)\n"
        )
        mongoexport.chmod(0o755)
        self.environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "MONGODB_URI": "mongodb://old"}

    def written(self, command: str, url: str = "") -> str:
        for place in ["/srv/pinakes", "/tmp/try"]:
            command = command.replace(place, str(self.folder / place.strip("/").replace("/", "-")))
        return re.sub(r"127\.0\.0\.1:3001", "127.0.0.1:0", command).replace("http://127.0.0.1:3000", url)

    def run(self, command: str, url: str = "", **environment: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.written(command, url)], cwd=self.folder, capture_output=True, text=True,
            env=self.environment | environment, timeout=PATIENCE_S, check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def serve(self, command: str, **environment: str):
        """Starts a server with a guide's command, in its own process group, and captures its output."""
        out = self.folder / "out.txt"
        with out.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-c", "exec " + self.written(command)], cwd=self.folder, stdout=file, stderr=file,
                env=self.environment | environment,
            )
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"listens on (http://\S+)", out.read_text())):
            assert process.poll() is None and time.monotonic() < end, out.read_text()
            time.sleep(0.05)
        return process, found[1], out


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def end(process: subprocess.Popen) -> None:
    process.terminate()
    assert process.wait(timeout=PATIENCE_S) == 0


def token(url: str) -> str:
    body = {"username": "admin", "password": Server.password("admin")}
    return requests.post(f"{url}/api/v3/auth/login", json=body, timeout=PATIENCE_S).json()["id"]


def test_a_site_is_migrated(machine):
    try_out, accounts, export, check, compare = blocks("scicat-migrate.md")
    (machine.folder / ".env").write_text(
        '# A comment.\nPID_PREFIX="20.500.12345/"\nADMIN_GROUPS="admin"\nMETRICS_ENABLED="yes"\nJWT_SECRET="thesecret"\n'
    )
    process, url, out = machine.serve(try_out)
    assert requests.get(f"{url}/api/v3/health", timeout=PATIENCE_S).status_code == 200
    end(process)
    assert "METRICS_ENABLED" in out.read_text() and "PID_PREFIX" not in out.read_text(), "only the former is not honoured"

    (machine.folder / "functionalAccounts.json").write_bytes((HERE / "functionalAccounts.json").read_bytes())
    assert "users added" in machine.run(accounts)
    machine.run(export)
    assert not (machine.folder / "rejected.ndjson").exists() or not (machine.folder / "rejected.ndjson").read_text()
    machine.run(check)
    process, url, _ = machine.serve("pinakes serve --data /srv/pinakes --listen 127.0.0.1:0", ADMIN_GROUPS="admin")
    counts = machine.run(compare, TOKEN=token(url), OLD=url, NEW=url)
    assert re.findall(r'"count":(\d+)', counts) == ["3", "3", "0", "0", "1", "1", "0", "0"], counts
    shown = requests.get(f"{url}/api/v4/datasets/public/20.500.12345%2F1", timeout=PATIENCE_S).json()
    assert (shown["datasetName"], shown["createdAt"]) == ("run 1", "2020-01-15T08:00:00.000Z")
    end(process)
    # The last export before the switch, and the return.
    machine.run(export.replace("import scicat", "import scicat --replace"))
    back = machine.run("pinakes export --data /srv/pinakes").splitlines()
    assert sum('"datasetName":"run' in line for line in back) == 3, back


def test_a_frontend_is_connected(machine):
    *_, files, look = blocks("scicat-frontend.md")
    theme = machine.folder / "theme.json"
    theme.write_text('{"name": "of the site"}')
    variables = dict(line.split("=") for line in files.splitlines())
    assert set(variables) == {"FRONTEND_CONFIG_FILE", "FRONTEND_THEME_FILE"}
    configuration = machine.folder / "configuration.json"
    configuration.write_text('{"accessTokenPrefix": "Bearer ", "siteName": "of the site"}')
    variables = {"FRONTEND_CONFIG_FILE": str(configuration), "FRONTEND_THEME_FILE": str(theme)}
    process, url, _ = machine.serve("pinakes serve --data /srv/pinakes --listen 127.0.0.1:0", **variables)
    assert '"siteName"' in machine.run(look, url) and '"status"' in machine.run(look, url)
    shown = requests.get(
        f"{url}/api/v3/admin/theme", headers={"Origin": "https://elsewhere.example.org"}, timeout=PATIENCE_S
    )
    assert shown.json()["name"] == "of the site" and shown.headers["Access-Control-Allow-Origin"]
    # The account that the guide adds while the server is running.
    machine.run("echo a-password-of-ada | pinakes user add ada --group mygroup --data /srv/pinakes")
    body = {"username": "ada", "password": "a-password-of-ada"}
    assert requests.post(f"{url}/api/v3/auth/login", json=body, timeout=PATIENCE_S).status_code == 201
    end(process)
