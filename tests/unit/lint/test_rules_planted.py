"""The programs of tests/gallery/lint: planted faults are found, sound look-alikes are left alone."""

from __future__ import annotations

import pytest

from tests.gallery.lint.score import Score, one_line, score
from trainprobe.causes import built, planned
from trainprobe.lint.running import all_rules


@pytest.fixture(scope="module")
def done() -> Score:
    return score()


def test_at_least_95_of_100_planted_faults_are_found(done: Score) -> None:
    planted = sum(done.planted.values())
    assert len(done.planted) >= 20
    assert all(number >= 5 for number in done.planted.values())
    assert sum(done.found.values()) >= 0.95 * planted, done.missed


def test_no_kind_is_lost(done: Score) -> None:
    assert {kind: done.found[kind] for kind in done.planted if done.found[kind] < 4} == {}


def test_sound_look_alikes_draw_nothing(done: Score) -> None:
    assert [one_line(one) for one in done.sound] == []


def test_planted_programs_draw_nothing_but_what_was_planted(done: Score) -> None:
    assert [one_line(one) for one in done.beside] == []


def test_every_rule_names_a_cause_of_the_catalogue() -> None:
    assert {rule.cause for rule in all_rules()} <= {one.id for one in built()} | {one.id for one in planned()}
