"""The data about findings in repositories of others is whole, and rules that it proves wrong are
hints.
"""

from __future__ import annotations

import re
from collections import Counter

from docs.pages.lint_precision import LAST, WORDS, by_rule, rounds
from trainprobe.lint.engine import all_rules
from trainprobe.lint.model import SHOWN_FROM

LEAST = 0.75
"""The share of right ones below which a rule is a hint."""
ENOUGH = 5
"""Findings that are right or wrong; where the last two rounds have fewer, the third counts too."""


def test_rows_are_whole() -> None:
    known = {rule.id for rule in all_rules()}
    everything: list[str] = []
    for each in rounds():
        assert each.note.endswith(".")
        read = {name for name, commit, lines in each.read if len(commit) == 12 and int(lines)}
        assert len(read) == len(each.read) >= 40
        everything += read
        assert all(any(row[:4] == gone for row in each.found) for gone in each.gone)
        for repository, _file, line, rule, judged, reason in each.found:
            assert repository in read
            assert line.isdecimal()
            assert rule in known
            assert judged in WORDS
            assert re.fullmatch(r"\S.*[.]", reason)
    assert len(everything) == len(set(everything)), "a repository is new in one round only"


def test_a_rule_that_is_mostly_wrong_is_a_hint() -> None:
    latest, more = (
        by_rule([row for each in rounds()[-last:] for row in each.left]) for last in (2, LAST)
    )
    for known in all_rules():
        found = latest.get(known.id, Counter())
        if found["right"] + found["wrong"] < ENOUGH:
            found = more.get(known.id, Counter())
        if found["right"] < LEAST * (found["right"] + found["wrong"]):
            assert known.confidence < SHOWN_FROM, known.id
