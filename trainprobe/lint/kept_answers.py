"""Answers kept on disk, so that a second run over the same source takes no reading of it.

An answer holds for the content of all files at which the first run looked, for the absence of those
that it looked for in vain, and for the rules of this version. Whatever differs makes it a new run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from trainprobe.lint.model import Edit, Finding, Fix, NotRead
from trainprobe.lint.output import LintResult, ReadStats
from trainprobe.lint.program import NodeInfo
from trainprobe.lint.reading import Looked, listed_files

MOST_KEPT = 64
"""Answers that are kept, the newest."""
CLOCK_TICK_NS = 20_000_000
"""File systems stamp with a clock that ticks every few milliseconds."""
NAME = "answer-{}.json"


@dataclasses.dataclass(frozen=True)
class Question:
    """All that decides an answer besides the source."""

    paths: Sequence[str]
    select: Collection[str]
    ignore: Collection[str]
    hints: bool
    around: NodeInfo

    @property
    def key(self) -> str:
        asked = [
            os.getcwd(),
            list(self.paths),
            sorted(self.select),
            sorted(self.ignore),
            self.hints,
            sorted(self.around.versions.items()),
            [self.around.cpus, self.around.descriptors, self.around.ranks],
            sys.version_info[:3],
            _of_this_version(),
        ]
        return hashlib.blake2b(json.dumps(asked).encode(), digest_size=16).hexdigest()


def folder() -> Path:
    """Return the folder of kept answers: $XDG_CACHE_HOME/trainprobe/lint."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "trainprobe", "lint")


def kept(question: Question) -> LintResult | None:
    """Return the answer to a question, where its source is as it was; None for a new one."""
    try:
        held = json.loads(Path(folder(), NAME.format(question.key)).read_bytes())
        not_read: list[NotRead] = []
        listed = [path for path, _ in listed_files(question.paths, not_read)]
        if held["listed"] != _digest(json.dumps([listed, [each.reason for each in not_read]])):
            return None
        if any(os.path.isfile(path) for path in held["absent"]):
            return None
        if any(_digest_of(path) != digest for path, digest in held["files"].items()):
            return None
        return _result(held["answer"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def keep(question: Question, looked: Looked, since_ns: int, answer: LintResult) -> None:
    """Keep an answer, unless a file changed after the time `since_ns`, when reading began. A file
    that cannot be read, a full disk or no home cost only time.
    """
    with contextlib.suppress(OSError, ValueError):
        document = _document(question, looked, since_ns, answer)
        if document is not None:
            _write(NAME.format(question.key), json.dumps(document))


def _document(
    question: Question, looked: Looked, since_ns: int, answer: LintResult
) -> dict[str, Any] | None:
    files = {}
    for path in sorted(looked.files):
        if os.stat(path).st_mtime_ns >= since_ns - CLOCK_TICK_NS:
            return None
        files[path] = _digest_of(path)
    not_read: list[NotRead] = []
    listed = [path for path, _ in listed_files(question.paths, not_read)]
    whole = all(os.path.isdir(path) for path in question.paths)
    return {
        "listed": _digest(json.dumps([listed, [each.reason for each in not_read]])),
        # the listing of a folder says what is not in it
        "absent": [] if whole else sorted(looked.absent),
        "files": files,
        "answer": {
            "findings": [dataclasses.asdict(finding) for finding in answer.findings],
            "read": vars(answer.read),
            "not_read": [vars(problem) for problem in answer.not_read],
        },
    }


def _write(name: str, text: str) -> None:
    at = folder()
    at.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=at, prefix=".")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(beside, at / name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    held = sorted(at.glob(NAME.format("*")), key=lambda path: path.stat().st_mtime)
    for old in held[:-MOST_KEPT]:
        old.unlink(missing_ok=True)


def _result(held: dict[str, Any]) -> LintResult:
    return LintResult(
        [_finding(row) for row in held["findings"]],
        ReadStats(**held["read"]),
        [NotRead(**row) for row in held["not_read"]],
    )


def _finding(row: dict[str, Any]) -> Finding:
    fix = row.pop("fix")
    span, reaches = row.pop("span"), row.pop("reaches")
    made = Fix(fix["says"], tuple(Edit(**edit) for edit in fix["edits"])) if fix else None
    return Finding(
        **row, fix=made, span=(span[0], span[1]), reaches=(str(reaches[0]), int(reaches[1]))
    )


def _digest_of(path: str) -> str:
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


@functools.cache
def _of_this_version() -> str:
    """The content of the rules and of all that they stand on; raises ValueError where it lies in no
    files of its own.
    """
    made = hashlib.blake2b(digest_size=16)
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    if not sources:
        raise ValueError("its own source cannot be read")
    for path in sources:
        made.update(path.read_bytes())
    return made.hexdigest()
