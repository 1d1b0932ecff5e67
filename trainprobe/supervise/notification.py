"""Tell a person or a service what happened: by a command of theirs or by a webhook."""

from __future__ import annotations

import json
import os
import shlex
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.system.run import run

WITHIN_S = 15.0
TRIES = 2
SCHEMA = "trainprobe.notification/1"


def check_target(target: str) -> None:
    """Raise UsageError for what is neither a URL nor a command."""
    if not target.startswith(("http://", "https://")):
        try:
            if shlex.split(target):
                return
        except ValueError:
            pass
        raise UsageError(f"--notify {target[:60]!r} is neither a URL nor a command.")


def notification(
    event: str,
    report: Mapping[str, Any],
    *,
    host: str,
    argv: tuple[str, ...],
    folder: str,
    **more: Any,
) -> dict[str, Any]:
    """Return what a webhook gets. All of it comes from a report or a redacted command."""
    causes = [one for one in report.get("causes") or () if isinstance(one, Mapping)]
    first = causes[0] if causes else {}
    suspects = [one for one in report.get("suspects") or () if isinstance(one, Mapping)]
    says = str(report.get("says") or "")
    return {
        "schema": SCHEMA,
        "event": event,
        "text": f"trainprobe: {event} on {host}: {says}",  # what chat services show
        "host": host,
        "command": shlex.join(argv),
        "verdict": report.get("verdict") or "",
        "says": says,
        "ranks": suspects[0].get("ranks", []) if suspects else first.get("ranks", []),
        "cause": {
            name: first.get(name) for name in ("id", "title", "confidence", "summary", "named")
        }
        if first
        else None,
        "case": folder,
        **more,
    }


def summary_of(data: Mapping[str, Any]) -> str:
    """The same in a few lines for people, as a command gets it on stdin."""
    cause = data.get("cause") or {}
    lines = [
        f"{data['event']} on {data['host']}: {data['says']}",
        *([f"{cause['id']}: {cause['summary']}"] if cause.get("summary") else []),
        f"command: {data['command']}",
        f"evidence: {data['case']}",
    ]
    return "".join(f"{line}\n" for line in lines)


class Notifier:
    """Sends in threads of its own; `failed` hears one sentence for each that did not arrive."""

    def __init__(self, targets: tuple[str, ...], failed: Callable[[str], object]) -> None:
        self._targets, self._failed = targets, failed
        self._threads: list[threading.Thread] = []

    def send(self, event: str, data: Mapping[str, Any], text: str) -> None:
        """Give a webhook `data` as JSON, and a command `text` on stdin."""
        for target in self._targets:
            thread = threading.Thread(
                target=self._send, args=(target, event, data, text), daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Wait for what is under way, but not for ever."""
        for thread in self._threads:
            thread.join(WITHIN_S + 1.0)

    def _send(self, target: str, event: str, data: Mapping[str, Any], text: str) -> None:
        try:
            if target.startswith(("http://", "https://")):
                _post(target, data)
                return
            ran = run(
                shlex.split(target),
                timeout_s=WITHIN_S,
                input=text.encode(),
                env={**os.environ, "TRAINPROBE_EVENT": event},
                output_cap_bytes=2**16,
            )
            if ran.ended.how != "exited" or ran.ended.code:
                said = ran.stderr.decode("utf-8", "replace").strip()[-200:]
                self._failed(
                    f"--notify: the command failed: {said or ran.ended.reason or ran.ended.how}."
                )
        except Exception as error:  # noqa: BLE001 - nobody to tell is no reason to end
            self._failed(f"--notify: nobody was told: {type(error).__name__}: {error}.")


def _post(url: str, data: Mapping[str, Any]) -> None:
    body = json.dumps(data).encode()
    request = urllib.request.Request(  # noqa: S310 - the user's own URL, and http(s) alone
        url, data=body, headers={"Content-Type": "application/json", "User-Agent": "trainprobe"}
    )
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=WITHIN_S / TRIES):  # noqa: S310 - as above
                return
        except urllib.error.HTTPError as error:
            if error.code < 500 or not left:
                raise
        except OSError:
            if not left:
                raise
