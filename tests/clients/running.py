"""The command under test, and how a server that it starts says where it listens."""

import contextlib
import os
import re
import select
import signal
import subprocess
import time

PINAKES = os.environ.get("PINAKES", "pinakes")
PATIENCE_S = 60


def printed_url(process: subprocess.Popen) -> str:
    """The URL that a server prints once it listens."""
    end, lines = time.monotonic() + PATIENCE_S, []
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stdout], [], [], 0.2)[0]:
            lines.append(process.stdout.readline())
            if found := re.search(r"listens on (http://\S+)", lines[-1]):
                return found[1]
    process.kill()
    raise AssertionError(f"the server did not start:\n{''.join(lines)}{process.communicate()[1]}")


@contextlib.contextmanager
def serving(*arguments):
    """The URL of `pinakes serve` with these arguments, on a free port; it must end well when it is told to."""
    process = subprocess.Popen(
        [PINAKES, "serve", "--listen", "127.0.0.1:0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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
