"""A load client: creates datasets, records which were acknowledged, and checks afterwards that they exist.

load.py write TOKEN NAME ACKS URL...   writes from several threads until SIGTERM. Each thread uses the
                                       servers in turn, and the next one if one refuses or disappears. Each line of
                                       ACKS is an acknowledged dataset. Prints all other outcomes of requests; exit
                                       code 1 if any of them was not clean.
load.py verify TOKEN ACKS URL          looks for each of them; exit code 1 if one is lost.

Clean outcomes are a connection that is refused or closed before the first byte of an answer, and 503. Anything else is not:
a partial answer, another status, no answer within a minute.
"""

import collections
import http.client
import json
import signal
import sys
import threading
import time
import urllib.parse

THREADS = 4
PATIENCE_S = 60
BODY = {
    "type": "raw",
    "datasetName": "drill",
    "owner": "drill",
    "ownerGroup": "drill",
    "contactEmail": "drill@example.org",
    "sourceFolder": "/drill",
    "creationLocation": "/DRILL/1",
    "creationTime": "2026-03-05T00:00:00.000Z",
    "principalInvestigator": "drill",
    "scientificMetadata": {"temperature": {"value": 20, "unit": "celsius"}},
}

class Closed(Exception):
    """The connection was refused, or closed before the first byte of an answer."""


class Client:
    """One connection at a time, to one of several servers."""

    def __init__(self, urls: list[str], token: str, first: int = 0) -> None:
        self.hosts = [urllib.parse.urlsplit(url).netloc for url in urls]
        self.token = token
        self.at = first
        self.connection = None

    def ask(self, method: str, path: str, body: dict | None = None) -> tuple[int, bytes]:
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.hosts[self.at % len(self.hosts)], timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self.connection.request(method, path, body and json.dumps(body), headers)
            answer = self.connection.getresponse()
        except (ConnectionError, http.client.CannotSendRequest) as error:
            raise Closed(type(error).__name__) from error
        return answer.status, answer.read()

    def next_server(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self.at += 1


def pid_of(name: str) -> str:
    return "/api/v3/datasets/" + urllib.parse.quote(name, safe="")


def write_from(client: Client, prefix: str, acks, lock, stop: threading.Event, seen: collections.Counter) -> None:
    n = 0
    while not stop.is_set():
        n += 1
        pid = f"{prefix}/{n}"
        try:
            status, body = client.ask("POST", "/api/v3/datasets", {**BODY, "pid": pid})
        except Closed as closed:
            outcome = f"closed ({closed})"
        except Exception as error:  # half an answer, or none in time
            outcome = f"unclean: {error!r}"
        else:
            outcome = "acknowledged" if status in (200, 201) else str(status)
            if outcome not in ("acknowledged", "503"):
                outcome = f"unclean: {status} {body[:200]!r}"
        with lock:
            if outcome.startswith("unclean") and not seen[outcome]:
                print(outcome, file=sys.stderr, flush=True)
            seen[outcome] += 1
            if outcome == "acknowledged":
                acks.write(pid + "\n")
                acks.flush()
        if outcome != "acknowledged":
            client.next_server()
            time.sleep(0.02)  # do not spend the machine on refusals
        elif n % 50 == 0:
            client.next_server()


def write(token: str, name: str, acks_file: str, urls: list[str]) -> int:
    stop, lock, seen = threading.Event(), threading.Lock(), collections.Counter()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open(acks_file, "a", encoding="utf-8") as acks:
        threads = [
            threading.Thread(
                target=write_from, args=(Client(urls, token, n), f"{name}-{n}", acks, lock, stop, seen), daemon=True
            )
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        while not stop.wait(1):
            pass
        for thread in threads:
            thread.join()
    print(", ".join(f"{outcome}: {n}" for outcome, n in sorted(seen.items())))
    return 1 if any(outcome.startswith("unclean") for outcome in seen) or not seen["acknowledged"] else 0


def verify(token: str, acks_file: str, url: str) -> int:
    with open(acks_file, encoding="utf-8") as acks:
        pids = [line.strip() for line in acks]
    client = Client([url], token)
    lost = [pid for pid in pids if client.ask("GET", pid_of(pid))[0] != 200]
    print(f"{len(pids)} acknowledged, {len(lost)} lost {lost[:5] if lost else ''}".rstrip())
    return 1 if lost or not pids else 0


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "write":
        sys.exit(write(rest[0], rest[1], rest[2], rest[3:]))
    sys.exit(verify(rest[0], rest[1], rest[2]))
