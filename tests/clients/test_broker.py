"""Jobs that publish to a real RabbitMQ broker."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pika
import pytest
import requests
from catalogue import HERE, Server, pinakes
from running import PATIENCE_S, free_port, printed, serving

BROKER = shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin:" + os.environ["PATH"])
JOBS = """
configVersion: v1
jobs:
  - jobType: archive
    create:
      auth: "#authenticated"
      actions:
        - {actionType: rabbitmq, exchange: jobs, queue: archive, key: jobs.archive}
    update:
      auth: "#jobOwnerUser"
      actions:
        - {actionType: rabbitmq, exchange: jobs, queue: changed, key: jobs.changed, ignoreErrors: true}
"""
JOB = {"type": "archive", "ownerUser": "user1", "ownerGroup": "group1", "jobParams": {"copies": "two"}}


class Broker:
    """A broker of its own, with a port mapper of its own."""

    def __init__(self, folder: Path) -> None:
        self.port, self.process = free_port(), None
        self.mapper = str(free_port())
        self.environment = os.environ | {
            "HOME": str(folder),
            "ERL_EPMD_PORT": self.mapper,
            "RABBITMQ_NODENAME": "tests@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        }
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [BROKER], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )
        printed(self.process, r"completed with \d+ plugins")

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE_S)

    def end(self) -> None:
        self.stop()
        subprocess.run(["epmd", "-port", self.mapper, "-kill"], capture_output=True, check=False)

    def connection(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))

    def next(self, queue: str) -> tuple:
        """The first message of a queue that is durable, as it must be to be found again."""
        connection = self.connection()
        try:
            channel = connection.channel()
            channel.queue_declare(queue, durable=True)
            channel.exchange_declare("jobs", "topic", durable=True)
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            assert method is not None, f"nothing in {queue}"
            return method, properties, json.loads(body)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    if BROKER is None:
        pytest.skip("rabbitmq-server is not installed")
    it = Broker(tmp_path_factory.mktemp("rabbitmq"))
    yield it
    it.end()


@contextlib.contextmanager
def publishing(folder: Path, broker: Broker, password: str):
    """A server that is configured by a SciCat site's own variables."""
    data = str(folder / "data")
    imported = pinakes("user", "import", "--data", data, str(HERE / "functionalAccounts.json"))
    assert imported.returncode == 0, imported.stderr
    (folder / "jobs.yaml").write_text(JOBS)
    environment = {
        "JOB_CONFIGURATION_FILE": str(folder / "jobs.yaml"),
        "RABBITMQ_ENABLED": "yes",
        "RABBITMQ_HOSTNAME": "127.0.0.1",
        "RABBITMQ_PORT": str(broker.port),
        "RABBITMQ_USERNAME": "guest",
        "RABBITMQ_PASSWORD": password,
    }
    with serving("--data", data, "--config", HERE / "pinakes.toml", environment=environment) as url:
        yield Server(url)


@pytest.fixture(scope="module")
def site(tmp_path_factory, broker):
    with publishing(tmp_path_factory.mktemp("publishing"), broker, "guest") as it:
        yield it


def ask(site: Server, method: str, path: str, body: dict) -> requests.Response:
    headers = {"Authorization": f"Bearer {site.token('user1')}"}
    return requests.request(method, site.v4 + path, json=body, headers=headers, timeout=PATIENCE_S)


def test_a_job_is_published(site, broker):
    answer = ask(site, "POST", "/jobs", JOB)
    assert answer.status_code == 201, answer.text
    job = answer.json()
    method, properties, message = broker.next("archive")
    assert (method.exchange, method.routing_key) == ("jobs", "jobs.archive")
    assert (properties.delivery_mode, properties.content_type) == (2, "application/json")
    assert (message["id"], message["type"], message["ownerUser"]) == (job["id"], "archive", "user1")
    assert message["jobParams"]["copies"] == "two"

    change = {"statusCode": "finishedSuccessful", "statusMessage": "done"}
    assert ask(site, "PATCH", f"/jobs/{job['id']}", change).status_code == 200
    assert broker.next("changed")[2]["statusCode"] == "finishedSuccessful"


def test_what_is_published_outlives_the_broker(site, broker):
    job = ask(site, "POST", "/jobs", JOB).json()
    broker.stop()
    broker.start()
    assert broker.next("archive")[2]["id"] == job["id"]


def test_a_broker_that_is_down_is_said(site, broker):
    job = ask(site, "POST", "/jobs", JOB).json()
    broker.next("archive")
    broker.stop()
    try:
        answer = ask(site, "POST", "/jobs", JOB)
        assert answer.status_code == 500, answer.text
        assert "The job was stored, but an action failed: rabbitmq: 127.0.0.1:" in answer.text
        assert "guest" not in answer.text
        # Where errors are to be ignored, the change is answered all the same.
        change = {"statusCode": "inProgress", "statusMessage": "going on"}
        assert ask(site, "PATCH", f"/jobs/{job['id']}", change).status_code == 200
    finally:
        broker.start()
    assert ask(site, "POST", "/jobs", JOB).status_code == 201


def test_a_refused_login_is_said(tmp_path, broker):
    with publishing(tmp_path, broker, "a-wrong-password") as site:
        answer = ask(site, "POST", "/jobs", JOB)
    assert answer.status_code == 500, answer.text
    assert "The job was stored, but an action failed: rabbitmq: 127.0.0.1:" in answer.text
    assert "a-wrong-password" not in answer.text
