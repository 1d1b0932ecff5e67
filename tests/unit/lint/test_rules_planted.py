"""The programs of tests/gallery/lint: planted faults are found, sound look-alikes are left
alone.
"""

from __future__ import annotations

from tests.gallery.lint.score import one_line, score
from trainprobe.causes import built, planned
from trainprobe.lint.engine import all_rules


def test_planted_faults_are_found_and_nothing_else() -> None:
    """One test, since scoring takes seconds: each worker would score for itself."""
    done = score()
    planted = sum(done.planted.values())
    assert len(done.planted) >= 20
    assert all(number >= 5 for number in done.planted.values())
    assert sum(done.found.values()) >= 0.95 * planted, done.missed
    assert {kind: done.found[kind] for kind in done.planted if done.found[kind] < 4} == {}
    assert [one_line(finding) for finding in done.sound] == [], "sound programs draw findings"
    assert [one_line(finding) for finding in done.beside] == [], "findings that nobody planted"


def test_every_rule_names_a_cause_of_the_catalogue() -> None:
    assert {rule.cause for rule in all_rules()} <= {one.id for one in built()} | {
        one.id for one in planned()
    }
