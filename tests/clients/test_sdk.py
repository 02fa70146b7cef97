"""The SDKs that SciCat has published for its versions 4.27 and 5.3 create and read records without changes to them."""

import os
import subprocess
import sys

import pytest
from running import PATIENCE_S
from catalogue import HERE


def installed(version: str) -> str:
    """Returns the folder of a version of the SDK, fetched on the first run; its dependencies are installed for the newest one."""
    folder = HERE / ".venv" / f"scicat-sdk-py-{version}"
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", folder, f"scicat-sdk-py=={version}"], check=True, timeout=PATIENCE_S)
    return str(folder)


@pytest.mark.parametrize("version", ["4.27.0", "5.3.3"])
def test_a_day_with_a_published_sdk(server, version):
    done = subprocess.run(
        [sys.executable, HERE / "sdk_day.py", server.url, server.token("ingestor"), server.token("admin")],
        env=os.environ | {"PYTHONPATH": installed(version)}, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
