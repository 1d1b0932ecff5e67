"""The case: a folder that keeps every look at the world, written line by line so that it survives our own death."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from trainprobe import __version__
from trainprobe.errors import UsageError
from trainprobe.model.codec import from_json, to_json
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.subjects import JOB, Subject
from trainprobe.redact import Redactor, clean

SCHEMA = "trainprobe.case/1"


@dataclass(frozen=True)
class SavedCase:
    """A case as it was found. `damage` holds one sentence for each part that could not be read."""

    folder: str
    meta: Mapping[str, Any]
    evidence: Tuple[Evidence, ...]
    damage: List[str]


class Case:
    """An open case. Safe to use from several threads. After `create` nothing here raises for a full or broken disk: see `trouble`."""

    def __init__(self, folder: str, name: str, redactor: Redactor) -> None:
        self.folder, self.name, self.trouble = folder, name, ""
        self.redactor = redactor
        self._evidence: List[Evidence] = []
        self._unwritten: List[bytes] = []
        self._lock = threading.RLock()
        self._fd = os.open(os.path.join(folder, "evidence.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @classmethod
    def create(cls, folder: Optional[str], command: str, argv: Sequence[str]) -> Case:
        """Make the folder of a new case; UsageError when that cannot be."""
        name = folder if folder is not None else f"./trainprobe-{time.strftime('%Y-%m-%dT%H-%M', time.gmtime())}-{socket.gethostname()}/"
        try:
            os.makedirs(name, exist_ok=True)
            os.makedirs(os.path.join(name, "files"), exist_ok=True)
            meta = {
                "schema": SCHEMA,
                "command": command,
                "argv": list(argv),
                "tool": {"name": "trainprobe", "version": __version__},
                "created": time.time(),
                "host": socket.gethostname(),
                "case": name,
            }
            with open(os.path.join(name, "case.json"), "w", encoding="utf-8") as file:
                json.dump(meta, file)
            return cls(os.path.abspath(name), name, Redactor(os.environ))
        except OSError as error:
            raise UsageError(f"The case folder {name} cannot be written: {error.strerror}.", "Name another folder with --case DIR.") from error

    @property
    def evidence(self) -> Tuple[Evidence, ...]:
        with self._lock:
            return tuple(self._evidence)

    def add(
        self,
        kind: str,
        *,
        subject: Subject = JOB,
        cell: str = "",
        source: str = "",
        began: Optional[float] = None,
        took_s: float = 0.0,
        outcome: LookOutcome = "ok",
        reason: str = "",
        data: Optional[Mapping[str, Any]] = None,
        files: Sequence[str] = (),
    ) -> Evidence:
        """Keep one look and return it as it was kept, redacted and with its id."""
        hidden, count = self.redactor.data(to_json(data or {}))
        with self._lock:
            new = Evidence(
                f"E{len(self._evidence) + 1}",
                kind,
                subject,
                cell,
                source,
                time.time() if began is None else began,
                took_s,
                outcome,
                reason,
                hidden,
                tuple(files),
                count,
            )
            self._evidence.append(new)
            self._unwritten.append(json.dumps(to_json(new), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            self._write()
        return new

    def _write(self) -> None:
        try:
            while self._unwritten:
                os.write(self._fd, self._unwritten[0])
                self._unwritten.pop(0)
        except OSError as error:
            self.trouble = f"The case could not be written: {error.strerror}."

    def keep_file(self, name: str, content: Union[bytes, str, os.PathLike[str]]) -> str:
        """Keep a redacted copy under files/ and return its name relative to the case."""
        safe = re.sub(r"[^A-Za-z0-9._@=,+-]", "_", name).lstrip(".") or "file"
        try:
            if not isinstance(content, bytes):
                with open(content, "rb") as source:
                    content = source.read()
            text, _ = self.redactor.text(clean(content.decode("utf-8", "replace")))
            with open(os.path.join(self.folder, "files", safe), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.trouble = f"{name} could not be kept: {error.strerror}."
        return f"files/{safe}"

    def write_derived(self, name: str, text: str) -> bool:
        """Write a file that can be made again from the evidence. Return False when it could not be written."""
        try:
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.trouble = f"{name} could not be written: {error.strerror}."
            return False
        return True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)


def read_case(folder: str) -> SavedCase:
    """Read a case that somebody saved; UsageError when `folder` is none."""
    damage: List[str] = []
    try:
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
            meta: Dict[str, Any] = json.load(file)
        with open(os.path.join(folder, "evidence.jsonl"), encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} is not a case: {error}.", "Name a folder that trainprobe made.") from error
    evidence = []
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            evidence.append(from_json(Evidence, json.loads(line)))
        except ValueError as error:
            damage.append(f"Line {number} of evidence.jsonl cannot be read: {error}.")
    return SavedCase(folder, meta, tuple(evidence), damage)
