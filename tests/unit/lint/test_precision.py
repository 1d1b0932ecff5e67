"""The data about findings in repositories of others is whole, and rules that it proves wrong are
hints.
"""

from __future__ import annotations

import re
from collections import Counter

from docs.pages.lint_precision import WORDS, rows
from trainprobe.lint.engine import all_rules
from trainprobe.lint.model import SHOWN_FROM

LEAST = 0.7
"""The share of right ones below which a rule is a hint, unless its patterns are mended."""
MENDED = {"rank-conditional-collective", "save-by-all-ranks"}
"""Below that, but all that made them wrong, one finding left out, is no longer found."""
ENOUGH = 5
"""Findings that are right or wrong; fewer say nothing of a rule."""


def test_rows_are_whole() -> None:
    read = {name: int(lines) for name, commit, lines in rows("read") if len(commit) == 12}
    assert len(read) == 40
    known = {rule.id for rule in all_rules()}
    for repository, _file, line, rule, judged, reason in rows("found"):
        assert repository in read
        assert line.isdecimal()
        assert rule in known
        assert judged in WORDS
        assert re.fullmatch(r"\S.*[.]", reason)


def test_a_rule_that_is_mostly_wrong_is_a_hint() -> None:
    judged: dict[str, Counter[str]] = {}
    for *_, rule, word, _reason in rows("found"):
        judged.setdefault(rule, Counter())[word] += 1
    for known in all_rules():
        found = judged.get(known.id, Counter())
        decided = found["right"] + found["wrong"]
        if decided >= ENOUGH and found["right"] < LEAST * decided and known.id not in MENDED:
            assert known.confidence < SHOWN_FROM, known.id
