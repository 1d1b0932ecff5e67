"""The remote end of a command: a task on stdin, results on stdout as lines of JSON."""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.record_classes import classes_of
from trainprobe.model.subjects import Subject
from trainprobe.nodes.answers import SCHEMA
from trainprobe.redact import Redactor

TASK_CAP_BYTES = 2**20
LOST = 141  # as of a program that SIGPIPE ended
TASK_S = 10.0  # the task comes with the connection


class RecordSender:
    """Sends a first line, the records, and a last line, whose reason is a UsageError raised inside.
    `none` means that there was nothing to do here.
    """

    def __init__(self) -> None:
        self.none = False
        self._number = 0
        self._lock = threading.Lock()
        self._redactor = Redactor(os.environ)

    def __enter__(self) -> RecordSender:  # noqa: PYI034 - Self is newer than Python 3.9
        self._line(
            {"schema": SCHEMA, "says": "begin", "host": os.uname().nodename, "now": time.time()}
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        reason = self._redactor.text(error.says)[0] if isinstance(error, UsageError) else ""
        if error is None or reason:
            end = {"schema": SCHEMA, "says": "end", "reason": reason}
            self._line({**end, "none": self.none, "now": time.time()})
        return bool(reason)

    def record(self, record: Evidence) -> None:
        """Send a record as it is: the records of a case are already redacted."""
        self._line(to_json(record))

    def records(self, records: Iterable[Evidence]) -> None:
        """Send several, what is the same in them only once."""
        for alike in classes_of(to_json(record) for record in records):
            self._line(alike)

    def tell(self, kind: str, data: Mapping[str, Any], **more: Any) -> None:
        """Send a redacted record of this host. `more` are fields of Evidence."""
        with self._lock:
            self._number += 1
            number = self._number
        more.setdefault("subject", Subject("host", host=os.uname().nodename))
        more.setdefault("began", time.time())
        more.update(
            {
                name: self._redactor.data(more[name])[0]
                for name in ("source", "reason")
                if name in more
            }
        )
        self.record(
            Evidence(f"E{number}", kind, data=self._redactor.data(to_json(data))[0], **more)
        )

    def _line(self, row: Any) -> None:
        try:
            with self._lock:
                sys.stdout.write(json.dumps(row) + "\n")
                sys.stdout.flush()
        except OSError:  # the reader is gone
            raise SystemExit(LOST) from None


class Task:
    """A JSON object in a line on stdin, which then stays open while somebody waits for us."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()

    def read(self) -> dict[str, Any]:
        """Raises UsageError where no valid task comes."""
        line, until = b"", time.monotonic() + TASK_S
        waiting = select.poll()
        waiting.register(self._fd, select.POLLIN | select.POLLHUP)
        while (
            not line.endswith(b"\n")
            and len(line) < TASK_CAP_BYTES
            and waiting.poll(max(0.0, until - time.monotonic()) * 1000)
        ):
            more = os.read(self._fd, 65536)  # nothing is sent behind the line
            if not more:
                break
            line += more
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UsageError("No task came on stdin.", "This command is for trainprobe itself.")
        return found

    def nobody_waits(self) -> bool:
        """Whether stdin has ended: the caller is gone."""
        waiting = select.poll()
        waiting.register(self._fd, select.POLLIN | select.POLLHUP | select.POLLERR)
        if not waiting.poll(0):
            return False
        return not os.read(self._fd, 4096)
