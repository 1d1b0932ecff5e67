"""The journals of collectives that the witness wrote (probes/_witness/_collectives.py)."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Dict, List

from trainprobe.case import Case
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.subjects import Subject

SLOT_BYTES = 512
JOURNAL_CAP_BYTES = 4 * 2**20
_NAME = re.compile(r"^rank(\d{1,9})\.(\d{1,10})\.ring$")


def read_journals(case: Case, cell: str, witness_dir: str, host: str = "") -> List[Evidence]:
    """Record one `collectives` evidence per journal in `witness_dir`."""
    try:
        names = sorted(os.listdir(witness_dir))
    except OSError:
        return []
    return [
        _read(case, cell, os.path.join(witness_dir, name), match, host)
        for name in names
        if (match := _NAME.match(name))
    ]


def _read(case: Case, cell: str, path: str, match: re.Match[str], host: str) -> Evidence:
    began = time.time()
    subject = Subject(
        "rank", host=host, rank=int(match.group(1)), pid=int(match.group(2)), role="rank"
    )
    source = f"journal {os.path.basename(path)}"
    try:
        with open(path, "rb") as handle:
            content = handle.read(JOURNAL_CAP_BYTES)
    except OSError as error:
        reason = f"the journal of collectives could not be read: {error.strerror}"
        return case.add(
            "collectives",
            subject=subject,
            cell=cell,
            source=source,
            began=began,
            outcome="unavailable",
            reason=reason,
        )
    calls, torn = parse_ring(content)
    outcome: LookOutcome
    outcome, reason = (
        ("partial", f"{torn} slots of the journal could not be read") if torn else ("ok", "")
    )
    return case.add(
        "collectives",
        subject=subject,
        cell=cell,
        source=source,
        began=began,
        took_s=time.time() - began,
        outcome=outcome,
        reason=reason,
        data={"calls": calls},
    )


def parse_ring(content: bytes) -> tuple[List[Dict[str, Any]], int]:
    """Return the calls in order and the number of slots that could not be read."""
    calls: List[Dict[str, Any]] = []
    torn = 0
    for begin in range(0, len(content) - SLOT_BYTES + 1, SLOT_BYTES):
        state = content[begin]
        if state not in (1, 2):
            continue
        try:
            row = json.loads(content[begin + 1 : begin + SLOT_BYTES].rstrip(b"\0"))
        except (ValueError, RecursionError):
            torn += 1
            continue
        if isinstance(row, dict) and isinstance(row.get("at"), (int, float)):
            calls.append({**row, "finished": state == 2})
        else:
            torn += 1
    calls.sort(
        key=lambda row: (
            row["at"],
            row.get("number", 0) if isinstance(row.get("number"), int) else 0,
        )
    )
    return calls, torn
