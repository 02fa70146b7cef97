"""The JavaScript client: the life of a deposit, by a script that node runs. Left out, and said so, without node and npm."""

import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent / "javascript"


@pytest.fixture(scope="session")
def script(tmp_path_factory):
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("javascript")
    for name in ["package.json", "life.cjs"]:
        shutil.copy(HERE / name, folder / name)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=300)
    return folder / "life.cjs"


def test_life_of_a_deposit(site, script):
    done = subprocess.run(
        ["node", script, site.url, site.token, site.collection],
        capture_output=True, text=True, timeout=120, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
