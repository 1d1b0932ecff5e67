"""What lint found, from evidence that may hold anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.facts.records import Records
from trainprobe.facts import LintFinding, LintRead

ROW = {
    "id": "fork-hazard",
    "rule": "fork",
    "file": "/job/src/train.py",
    "line": 9,
    "says": "It forks.",
    "why": "Locks.",
    "confidence": 0.8,
    "fix": "Spawn.",
}


def of(*rows: Any, **more: Any) -> Records:
    return Records("").add(
        "lint",
        {
            "script": "/job/src/train.py",
            "files": 3,
            "lines": 200,
            "left_out": "",
            "findings": list(rows),
        },
        **more,
    )


def test_a_finding_is_read() -> None:
    facts = of(ROW).facts()

    (found,) = facts.of(LintFinding)
    assert (found.cause, found.where, found.confidence, found.fix, found.evidence) == (
        "fork-hazard",
        "train.py:9",
        0.8,
        "Spawn.",
        ("E1",),
    )
    assert facts.of(LintRead) == (LintRead(("E1",), "", None, "/job/src/train.py", 3, 200, ""),)


def test_nothing_found_is_a_look_all_the_same() -> None:
    facts = of().facts()

    assert (facts.looked("lint"), facts.of(LintFinding)) == (True, ())


@pytest.mark.parametrize(
    "bad",
    [
        {},
        3,
        {**ROW, "line": "nine"},
        {**ROW, "says": ""},
        {**ROW, "id": None},
        {**ROW, "confidence": float("nan")},
    ],
)
def test_a_bad_row_costs_only_itself(bad: Any) -> None:
    assert [one.line for one in of(bad, ROW).facts().of(LintFinding)] == [9]


@pytest.mark.parametrize(
    ("row", "where", "confidence"),
    [({**ROW, "line": -3, "confidence": 7}, "train.py", 1.0), ({"id": "x", "says": "y"}, "", 0.0)],
)
def test_what_is_missing_or_out_of_range_is_set_right(
    row: Any, where: str, confidence: float
) -> None:
    (found,) = of(row).facts().of(LintFinding)

    assert (found.where, found.confidence) == (where, confidence)


def test_a_case_with_endless_findings_is_read_in_part() -> None:
    assert len(of(*[ROW] * 5000).facts().of(LintFinding)) == 200


def test_a_look_that_failed_tells_why() -> None:
    facts = of(outcome="timed_out", reason="too slow").facts()

    assert [one.reason for one in facts.refused("lint")] == ["too slow"]
    assert not facts.of(LintRead)
