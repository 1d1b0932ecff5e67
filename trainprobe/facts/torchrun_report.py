"""The table that torchrun prints at its end: which ranks failed, and which it saw first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# torch/distributed/elastic/multiprocessing/errors/__init__.py, ChildFailedError.
_ROW = re.compile(r"\s{1,4}(time|host|rank|exitcode|error_file|traceback|msg)\s{0,6}: (.{0,400})$")
_RANK = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,7})\)")
_EXIT = re.compile(r"(-?\d{1,6}) \(pid: (\d{1,9})\)")
_ENTRY = re.compile(r"\[\d{1,7}\]:\s{0,4}$")
# Since torch 1.10 "Root Cause (first observed failure):", before it "Root Cause:" and "Other
# Failures:".
_MARKS = ("Root Cause", "Failures:", "Other Failures:", "=====", "-----", "*****")
ROWS_CAP = 4096


@dataclass(frozen=True)
class FailedRank:
    """`captured`: rank, local_rank, exitcode, pid, host, time, error_file, traceback and first
    ("true" for the one seen first).
    """

    line: str
    captured: Mapping[str, str]


def failures(text: str) -> list[FailedRank]:
    """Return the entries of all such tables in `text`."""
    if "Root Cause" not in text:
        return []
    found: list[FailedRank] = []
    entry: dict[str, str] | None = None
    first = False
    for line in text.splitlines():
        if line.startswith(_MARKS) or _ENTRY.match(line):
            _close(entry, found)
            entry = {"first": "true" if first else "false"} if _ENTRY.match(line) else None
            if line.startswith(("Root", "Failures", "Other")):
                first = line.startswith("Root")
        elif entry is not None:
            row = _ROW.match(line)
            if row is not None:
                entry[row.group(1)] = row.group(2).strip()
    _close(entry, found)
    return found[:ROWS_CAP]


def _close(entry: dict[str, str] | None, found: list[FailedRank]) -> None:
    if not entry:
        return
    rank, exited = _RANK.match(entry.get("rank", "")), _EXIT.match(entry.get("exitcode", ""))
    if rank is None or exited is None:
        return
    line = f"rank {rank.group(1)} exitcode {exited.group(1)} (pid {exited.group(2)})"
    own = {
        "rank": rank.group(1),
        "local_rank": rank.group(2),
        "exitcode": exited.group(1),
        "pid": exited.group(2),
    }
    found.append(FailedRank(line, {**entry, **own}))
