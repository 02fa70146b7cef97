"""The command under test, and how a server that it starts reports its address."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time

PINAKES = os.environ.get("PINAKES", "pinakes")
PATIENCE_S = 60


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def listening(process: subprocess.Popen, port: int) -> None:
    """Waits until another program accepts connections on a port of this machine."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"{process.args[0]} takes no connection on port {port}")


def printed(process: subprocess.Popen, pattern: str) -> re.Match:
    """Returns what a program prints once it is ready."""
    end, said = time.monotonic() + PATIENCE_S, b""
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stdout], [], [], 0.2)[0]:
            # Not `readline`: it may buffer more than it returns, which `select` does not report.
            said += os.read(process.stdout.fileno(), 64 * 1024)
            whole_lines = said[: said.rfind(b"\n") + 1].decode()
            if found := re.search(pattern, whole_lines):
                return found
    process.kill()
    raise AssertionError(f"the server did not start:\n{said.decode()}{process.communicate()[1]}")


def printed_url(process: subprocess.Popen) -> str:
    """Returns the URL that a server prints once it listens."""
    return printed(process, r"listens on (http://\S+)")[1]


@contextlib.contextmanager
def serving(*arguments, environment: dict | None = None):
    """Yields the URL of `pinakes serve` with these arguments and variables, on a free port; it must exit with success when stopped."""
    process = subprocess.Popen(
        [PINAKES, "serve", "--listen", "127.0.0.1:0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (environment or {}),
    )
    try:
        yield printed_url(process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, errors
