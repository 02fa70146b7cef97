"""A headless Chromium, controlled through the part of its DevTools protocol that these tests need."""

import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import websocket

PATIENCE_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    return next((it for it in map(shutil.which, NAMES) if it), None)


class Page:
    """One tab."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="chromium", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
            + ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
            + ["--remote-allow-origins=*", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self._port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE_S) as answer:
            tabs = json.load(answer)
        address = next(it["webSocketDebuggerUrl"] for it in tabs if it["type"] == "page")
        self.socket = websocket.create_connection(address, timeout=PATIENCE_S)
        self.numbers = itertools.count(1)
        self.problems: list[str] = []
        self.dialogs: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def _port(self) -> str:
        told = Path(self.profile.name, "DevToolsActivePort")
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if told.exists() and (lines := told.read_text().split()):
                return lines[0]
            assert self.process.poll() is None, "Chromium ended"
            time.sleep(0.05)
        raise AssertionError("Chromium does not say where it listens")

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)
        self.profile.cleanup()

    def _note(self, event: dict) -> None:
        """Returns the errors of a page: failed scripts, files blocked by a policy, dialogs opened by scripts."""
        match event.get("method"):
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                self.problems.append(event["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(event["params"]["exceptionDetails"]))
            case "Page.javascriptDialogOpening":
                self.dialogs.append(event["params"]["message"])

    def ask(self, method: str, **params) -> dict:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def script(self, text: str):
        answer = self.ask("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str):
        """Waits until a condition of the page is true and returns its value."""
        end = time.monotonic() + PATIENCE_S
        while not (value := self.script(condition)):
            assert time.monotonic() < end, f"never so: {condition}"
            time.sleep(0.05)
        return value

    def open(self, url: str) -> None:
        self.script("window.left = true")
        self.ask("Page.navigate", url=url)
        self.wait_for("!window.left && document.readyState === 'complete'")

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def size(self, width: int, height: int) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
