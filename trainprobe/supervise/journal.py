"""The folder of a run: a journal, and the cases of the looks that were worth keeping."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.redact import Redactor

JOURNAL = "run.jsonl"
MOST_BYTES = 4 * 2**20  # and as much again in the one before
LOOKS_KEPT = 8


class RunFolder:
    """Where a run keeps what it saw. Nothing here raises once it is made: a full disk must not
    cost the job anything.
    """

    def __init__(self, path: str, redactor: Redactor) -> None:
        self.path, self._redactor = path, redactor
        self._looks: list[str] = []
        self._last_look = 0
        self.trouble = ""
        self.worth_keeping = False

    @classmethod
    def make(
        cls, asked: str | None, argv: tuple[str, ...], environ: Mapping[str, str]
    ) -> RunFolder:
        """Make the folder: `asked`, or a new one here, or where temporary files go if nothing can
        be written here. Raises UsageError where `asked` cannot be made.
        """
        redactor = Redactor(environ)
        host = socket.gethostname().partition(".")[0]
        name = f"trainprobe-run-{time.strftime('%Y-%m-%dT%H-%M-%S', time.gmtime())}-{host}"
        for path in [asked] if asked else [name, os.path.join(tempfile.gettempdir(), name)]:
            try:
                _make(path if asked else f"{path}-{os.getpid()}")
            except OSError as error:
                why = error.strerror
                continue
            folder = cls(os.path.abspath(path if asked else f"{path}-{os.getpid()}"), redactor)
            folder.worth_keeping = asked is not None
            folder.note("started", argv=list(argv), pid=os.getpid(), host=host)
            return folder
        raise UsageError(
            f"The folder {asked or name} cannot be written: {why}.",
            "Name another folder with --case DIR.",
        )

    def note(self, event: str, **fields: Any) -> None:
        """Add one line to the journal."""
        line = json.dumps({"at": round(time.time(), 3), "event": event, **self._hidden(fields)})
        path = os.path.join(self.path, JOURNAL)
        try:
            with contextlib.suppress(FileNotFoundError):
                if os.path.getsize(path) > MOST_BYTES:
                    os.replace(path, f"{path}.1")
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            self.trouble = f"The journal cannot be written: {error.strerror}."

    def next_look(self) -> str:
        """Where the next look's case goes."""
        while True:
            self._last_look += 1
            path = os.path.join(self.path, f"look-{self._last_look}")
            if not os.path.exists(path):
                return path

    def look_made(self, path: str, *, keep: bool) -> None:
        """Keep the case of a look: for good, also where that is said later, or until there are
        enough newer ones.
        """
        if keep:
            self.worth_keeping = True
            if path in self._looks:
                self._looks.remove(path)
            return
        self._looks.append(path)
        while len(self._looks) > LOOKS_KEPT:
            shutil.rmtree(self._looks.pop(0), ignore_errors=True)

    def close(self) -> None:
        """Remove a folder in which nothing lies that anybody would read."""
        if self.worth_keeping:
            return
        with contextlib.suppress(OSError):
            flight = os.path.join(self.path, "flight")
            if not os.listdir(flight) and not os.path.exists(os.path.join(self.path, "error.json")):
                shutil.rmtree(self.path, ignore_errors=True)

    def _hidden(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        hidden = self._redactor.data(dict(fields))[0]
        return hidden if isinstance(hidden, Mapping) else {}


def _make(path: str) -> None:
    os.makedirs(path, mode=0o700, exist_ok=True)
    os.makedirs(os.path.join(path, "flight"), mode=0o700, exist_ok=True)
    with open(os.path.join(path, JOURNAL), "a", encoding="utf-8"):
        pass
