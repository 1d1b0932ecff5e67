"""The data about faults of public histories is whole, and its head says what its rows do."""

from __future__ import annotations

import re

from tests.gallery.lint.history import HERE, faults
from trainprobe.lint.engine import all_rules

PARTS = (
    *("development", "held out", "second development"),
    *("second held out", "third held out", "fourth held out", "fifth held out"),
    *("sixth held out", "seventh held out"),
)


def test_rows_are_whole() -> None:
    known = {rule.id for rule in all_rules()}
    for fault in faults():
        assert fault.part in PARTS
        assert fault.rules == ("none",) or set(fault.rules) <= known
        assert fault.first <= fault.last
        assert {fault.once, fault.today} <= {"found", "missed"}
        assert re.fullmatch(r"[0-9a-f]{7,40}", fault.fix)


def test_the_head_counts_the_rows() -> None:
    head = (HERE / "history.tsv").read_text(encoding="utf-8").split("# part")[0]
    said = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) of (\d+)", head)]
    counted = []
    for part in PARTS:
        rows = [fault for fault in faults() if fault.part == part]
        counted += [
            (sum(fault.once == "found" for fault in rows), len(rows)),
            (sum(fault.today == "found" for fault in rows), len(rows)),
        ]
    assert said == counted
