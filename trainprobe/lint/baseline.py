"""Findings that a project has accepted: a file of them, so that only new ones are told.

A finding is known again by its rule, its cause, its file and the text of its line, so that it may
move; of two with the same text, both must be in the baseline.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trainprobe.lint.model import Finding

SCHEMA = "trainprobe.lint-baseline/1"


class Known(NamedTuple):
    """What a finding is known by; `file` is relative to the folder of the baseline."""

    rule: str
    id: str
    file: str
    code: str


def known_by(finding: Finding, folder: str) -> Known:
    file = os.path.relpath(os.path.abspath(finding.file), os.path.abspath(folder))
    return Known(finding.rule, finding.id, file.replace(os.sep, "/"), finding.code)


def as_document(findings: Iterable[Finding], folder: str) -> str:
    """Return the text of a baseline in `folder` that holds these findings."""
    held = Counter(known_by(finding, folder) for finding in findings)
    rows = [{**each._asdict(), "count": held[each]} for each in sorted(held)]
    return json.dumps({"schema": SCHEMA, "findings": rows}, indent=1, ensure_ascii=False) + "\n"


def read(text: str) -> Counter[Known]:
    """Return the findings of a baseline; raises ValueError with a sentence."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    rows = document.get("findings") if isinstance(document, Mapping) else None
    if not isinstance(rows, list) or document.get("schema") != SCHEMA:
        raise ValueError(f"it is no document {SCHEMA}")
    return Counter(dict(_row(row) for row in rows))


def _row(row: Any) -> tuple[Known, int]:
    try:
        known = Known(*(row[name] for name in Known._fields))
        count = row.get("count", 1)
    except (KeyError, TypeError, AttributeError):
        raise ValueError("a finding of it lacks its rule, id, file or code") from None
    if not all(isinstance(each, str) for each in known) or not isinstance(count, int):
        raise ValueError("a finding of it holds something else than text")
    return known, count


def beyond(findings: Iterable[Finding], held: Counter[Known], folder: str) -> list[Finding]:
    """Return the findings that the baseline does not hold, or not so often."""
    left, new = held.copy(), []
    for finding in findings:
        known = known_by(finding, folder)
        if left[known] > 0:
            left[known] -= 1
        else:
            new.append(finding)
    return new
