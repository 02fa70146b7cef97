"""The server's metrics for Prometheus, and the alarms and the dashboard that use them."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest
import requests
from running import PATIENCE_S

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
ALERTS = PACKAGING / "prometheus" / "alerts.yaml"
DASHBOARD = PACKAGING / "grafana" / "pinakes.json"
NAME = re.compile(r"\b(?:pinakes|process)_[a-z_]+")


@pytest.fixture(scope="module")
def metrics(server):
    """Returns the metrics page after a request."""
    assert requests.get(f"{server.v3}/datasets", timeout=PATIENCE_S).status_code == 200
    answer = requests.get(f"{server.url}/metrics", timeout=PATIENCE_S)
    assert answer.status_code == 200
    return answer.text


def promtool(*arguments, given=None):
    if shutil.which("promtool") is None:
        pytest.fail("promtool is not installed: apt-get install prometheus")
    return subprocess.run(["promtool", *arguments], input=given, capture_output=True, text=True, timeout=60)


def told(metrics):
    """Returns the names of all samples."""
    return {line.split("{")[0].split(" ")[0] for line in metrics.splitlines() if line and not line.startswith("#")}


def test_the_page_is_as_prometheus_likes_it(metrics):
    checked = promtool("check", "metrics", given=metrics)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_alarms_are_rules_about_what_is_told(metrics):
    checked = promtool("check", "rules", str(ALERTS))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    lines = [line for line in ALERTS.read_text().splitlines() if "description" not in line and not line.startswith("#")]
    named = set(NAME.findall("\n".join(lines)))
    assert named and named <= told(metrics), named - told(metrics)


def test_the_dashboard_shows_what_is_told(metrics, tmp_path):
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = set(NAME.findall("\n".join(expressions)))
    assert named and named <= told(metrics), named - told(metrics)
    # Prometheus itself checks each expression, with Grafana's variables filled in.
    rules = ["groups:", "- name: panels", "  rules:"]
    for at, expression in enumerate(expressions):
        text = expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
        rules += [f"  - record: panel:number_{at}", "    expr: " + json.dumps(text)]
    file = tmp_path / "panels.yaml"
    file.write_text("\n".join(rules))
    checked = promtool("check", "rules", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr
