"""A headless Chromium, spoken to over a pair of pipes: no driver, no port, no network of its own."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
PATIENCE = 120.0


def found() -> str | None:
    """The browser of this machine, if there is one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Tab:
    """One page of the browser, and everything it reported."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer; what happens meanwhile is kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there whole."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def size(self, width: int, height: int = 900) -> None:
        """Set the size of the window, as a phone or a screen would."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def ask(self, script: str) -> Any:
        """The value of an expression, worked out in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser did not answer in time"
            more = os.read(self._out, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        raw, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        return message


@contextmanager
def tab(browser: str, profile: Path) -> Iterator[Tab]:
    """A page of a browser that runs while the block does."""
    read_by_browser, into = os.pipe()
    out, written_by_browser = os.pipe()
    # The browser reads its pipe 3 and writes its pipe 4; a shell puts them there.
    command = 'exec "$@" 3<&"$READ" 4>&"$WRITE"'
    environment = {**os.environ, "READ": str(read_by_browser), "WRITE": str(written_by_browser)}
    arguments = ["bash", "-c", command, "bash", browser, *FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        arguments,
        env=environment,
        pass_fds=(read_by_browser, written_by_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_by_browser)
    os.close(written_by_browser)
    try:
        yield Tab(into, out)
    finally:
        os.close(into)
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(out)
