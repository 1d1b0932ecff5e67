"""The data about findings in repositories of others is whole, and rules that it proves wrong are
hints.
"""

from __future__ import annotations

import re
from collections import Counter

from docs.pages.lint_precision import WORDS, by_rule, rounds
from trainprobe.lint.engine import all_rules
from trainprobe.lint.model import SHOWN_FROM

LEAST = 0.7
"""The share of right ones below which a rule is a hint, unless its patterns are mended."""
MENDED = {"rank-conditional-collective", "missing-set-device", "save-by-all-ranks"}
"""Below that over all rounds, but what made them wrong is mended: nearly all of it is no longer
found.
"""
ENOUGH = 5
"""Findings that are right or wrong; fewer say nothing of a rule."""


def test_rows_are_whole() -> None:
    known = {rule.id for rule in all_rules()}
    everything: list[str] = []
    for each in rounds():
        assert each.note.endswith(".")
        read = {name for name, commit, lines in each.read if len(commit) == 12 and int(lines)}
        assert len(read) == len(each.read) >= 40
        everything += read
        for repository, _file, line, rule, judged, reason in each.found:
            assert repository in read
            assert line.isdecimal()
            assert rule in known
            assert judged in WORDS
            assert re.fullmatch(r"\S.*[.]", reason)
    assert len(everything) == len(set(everything)), "a repository is new in one round only"


def test_a_rule_that_is_mostly_wrong_is_a_hint() -> None:
    judged = by_rule([row for each in rounds() for row in each.found])
    for known in all_rules():
        found = judged.get(known.id, Counter())
        decided = found["right"] + found["wrong"]
        if decided >= ENOUGH and found["right"] < LEAST * decided and known.id not in MENDED:
            assert known.confidence < SHOWN_FROM, known.id
