"""A small client of Chromium's DevTools protocol over a pipe: no package is needed for it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser_program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """A headless Chromium with one tab. `events` are all that came of the tab, in order."""

    def __init__(self, program: str, profile: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._rest = b""
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        flags = (
            "--headless --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run"
            " --disable-background-networking --disable-component-update --disable-sync"
            " --hide-scrollbars --force-color-profile=srgb --window-size=1280,1600"
        )
        # the browser reads its descriptor 3 and writes to 4
        shell = f'exec "$0" {flags} --user-data-dir="$1" about:blank 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, program, str(profile)],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.send("Network.emulateNetworkConditions", offline=True, **offline)

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._session = ""
            self.send("Browser.close")
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def send(self, method: str, **values: Any) -> dict[str, Any]:
        """Call a method and return its result; RuntimeError with what the browser says of it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                found: dict[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            got = os.read(self._read, 2**20) if ready else b""
            if not got:
                raise RuntimeError("the browser says nothing")
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        self.until(lambda: self.run("document.readyState") == "complete")

    def run(self, script: str) -> Any:
        """The value of an expression on the page; a promise is waited for."""
        answer = self.send(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds; AssertionError when it never does."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, "it never came true"
            time.sleep(0.02)

    def press(self, key: str, *, shift: bool = False) -> None:
        codes = {"Tab": 9, "Enter": 13, " ": 32, "Escape": 27, "End": 35, "Home": 36}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        values = {"key": key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 if shift else 0}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self.send("Input.dispatchKeyEvent", type="keyDown", **values, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def troubles(self) -> Iterator[str]:
        """Errors of the console and of scripts, and what broke the page's policy."""
        self.run("1")  # whatever was under way has been told
        for event in self.events:
            values = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                yield json.dumps(values)[:500]
            elif event["method"] == "Log.entryAdded":
                yield str(values["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                yield json.dumps(values["args"])[:500]

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
