"""Jobs that publish to a real RabbitMQ broker."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pika
import pytest
import requests
from catalogue import HERE, Server, pinakes
from certificates import certified
from running import PATIENCE_S, PINAKES, free_port, printed, printed_url, serving

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
    """A separate broker, with its own port mapper."""

    def __init__(self, folder: Path) -> None:
        self.port, self.tls_port, self.process = free_port(), free_port(), None
        self.mapper = str(free_port())
        self.authority = certified(folder)
        configuration = folder / "rabbitmq.conf"
        configuration.write_text(
            f"listeners.ssl.default = 127.0.0.1:{self.tls_port}\nssl_options.cacertfile = {self.authority}\n"
            f"ssl_options.certfile = {folder / 'server.pem'}\nssl_options.keyfile = {folder / 'server.key'}\n"
        )
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
            "RABBITMQ_CONFIG_FILE": str(configuration),
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
        """Returns the first message of a queue, which must be durable to survive a restart."""
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
def publishing(folder: Path, broker: Broker, password: str = "guest", more: str = "", port: int | None = None):
    """Starts a server that is configured by a SciCat site's own variables, and `more` settings."""
    data = str(folder / "data")
    imported = pinakes("user", "import", "--data", data, str(HERE / "functionalAccounts.json"))
    assert imported.returncode == 0, imported.stderr
    (folder / "jobs.yaml").write_text(JOBS)
    environment = {
        "JOB_CONFIGURATION_FILE": str(folder / "jobs.yaml"),
        "RABBITMQ_ENABLED": "yes",
        "RABBITMQ_HOSTNAME": "127.0.0.1",
        "RABBITMQ_PORT": str(port or broker.port),
        "RABBITMQ_USERNAME": "guest",
        "RABBITMQ_PASSWORD": password,
    }
    settings = folder / "pinakes.toml"
    settings.write_text((HERE / "pinakes.toml").read_text().replace("[scicat]\n", f"[scicat]\n{more}\n", 1))
    with serving("--data", data, "--config", settings, environment=environment) as url:
        yield Server(url)


@pytest.fixture(scope="module")
def site(tmp_path_factory, broker):
    with publishing(tmp_path_factory.mktemp("publishing"), broker) as it:
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


# One attempt, so that its failure is the answer.
ONCE = "job_action_attempts = 1"


def test_a_broker_that_is_down_is_said(tmp_path, broker):
    with publishing(tmp_path, broker, more=ONCE) as site:
        job = ask(site, "POST", "/jobs", JOB).json()
        broker.next("archive")
        broker.stop()
        try:
            answer = ask(site, "POST", "/jobs", JOB)
            assert answer.status_code == 500, answer.text
            assert "The job was stored, but an action failed: rabbitmq: 127.0.0.1:" in answer.text
            assert "guest" not in answer.text
            # If errors are ignored, the change is answered anyway.
            change = {"statusCode": "inProgress", "statusMessage": "going on"}
            assert ask(site, "PATCH", f"/jobs/{job['id']}", change).status_code == 200
        finally:
            broker.start()
        assert ask(site, "POST", "/jobs", JOB).status_code == 201
        broker.next("archive")


def test_a_refused_login_is_said(tmp_path, broker):
    with publishing(tmp_path, broker, "a-wrong-password", more=ONCE) as site:
        answer = ask(site, "POST", "/jobs", JOB)
    assert answer.status_code == 500, answer.text
    assert "The job was stored, but an action failed: rabbitmq: 127.0.0.1:" in answer.text
    assert "a-wrong-password" not in answer.text


def wait_for(broker: Broker, queue: str, job: dict) -> None:
    """Receives messages until that of a job arrives, which may take a while. A broker that was killed may deliver messages again."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            if broker.next(queue)[2]["id"] == job["id"]:
                return
        except AssertionError:
            time.sleep(0.1)
        assert time.monotonic() < end, f"nothing came to {queue} of job {job['id']}"


def test_a_message_waits_for_its_broker(tmp_path, broker):
    """The job is accepted while the broker is down, and its message survives the server, which is killed meanwhile."""
    data, settings = tmp_path / "data", tmp_path / "pinakes.toml"
    with publishing(tmp_path, broker, more="job_action_wait_ms = 200") as site:
        broker.stop()
        before = ask(site, "POST", "/jobs", JOB)
        assert before.status_code == 201, before.text
        broker.start()
        wait_for(broker, "archive", before.json())
        broker.stop()
    environment = {
        "JOB_CONFIGURATION_FILE": str(tmp_path / "jobs.yaml"), "RABBITMQ_ENABLED": "yes",
        "RABBITMQ_HOSTNAME": "127.0.0.1", "RABBITMQ_PORT": str(broker.port),
    }
    arguments = [PINAKES, "serve", "--listen", "127.0.0.1:0", "--data", str(data), "--config", str(settings)]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    )
    after = ask(Server(printed_url(process)), "POST", "/jobs", JOB)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    assert after.status_code == 201, after.text
    broker.start()
    with serving(*arguments[4:], environment=environment):
        wait_for(broker, "archive", after.json())


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_broker_is_asked_over_tls(tmp_path, broker, is_trusted):
    more = f"{ONCE}\nrabbitmq_tls = true\n"
    if is_trusted:
        more += f'rabbitmq_ca_file = "{broker.authority}"\n'
    with publishing(tmp_path, broker, more=more, port=broker.tls_port) as site:
        answer = ask(site, "POST", "/jobs", JOB)
    if is_trusted:
        assert answer.status_code == 201, answer.text
        wait_for(broker, "archive", answer.json())
    else:
        assert answer.status_code == 500 and f"rabbitmq: 127.0.0.1:{broker.tls_port}: " in answer.text, answer.text
