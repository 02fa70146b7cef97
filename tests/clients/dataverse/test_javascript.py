"""The JavaScript client, in scripts run by node: the life cycle of a deposit, and its other calls. Skipped, with a message, without node and npm."""

import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent / "javascript"


@pytest.fixture(scope="session")
def scripts(tmp_path_factory):
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("javascript")
    for name in ["package.json", "life.cjs", "calls.cjs"]:
        shutil.copy(HERE / name, folder / name)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=300)
    return folder


def run(script, *arguments):
    done = subprocess.run(
        ["node", script, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_life_of_a_deposit(site, scripts):
    run(scripts / "life.cjs", site.url, site.token, site.collection)


def test_other_calls(site, scripts):
    """Uses an account of its own, whose token is deleted at the end."""
    run(scripts / "calls.cjs", site.url, site.account("caller"), "root", site.superuser("overseer"))
