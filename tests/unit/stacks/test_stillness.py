"""For how long a thread has got no further, by what several looks show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe.stacks.stillness import Stillness, Track, slept_through, stillness

SLEEPS = Track(
    same_place=True, looks=3, span_s=5.3, asleep_s=40.0, switches=4, cpu_s=0.0, age_s=90.0
)
POLLS = replace(SLEEPS, asleep_s=0.05, switches=60)


def test_who_sleeps_tells_its_age_by_itself() -> None:
    assert stillness(SLEEPS) == Stillness(40.0, 90.0)
    assert stillness(replace(SLEEPS, asleep_s=0.02)) == Stillness(5.3, 90.0), (
        "an earlier look woke it"
    )
    assert stillness(replace(SLEEPS, looks=1, span_s=0.0, switches=None)) == Stillness(40.0, 90.0)


@pytest.mark.parametrize(
    ("shown", "at_least_s", "at_most_s"),
    [
        ({}, 0.05, 90.0),
        ({"silent_s": 300.0, "telling": True}, 5.3, 90.0),
        ({"silent_s": 60.0, "telling": True}, 5.3, 60.0),
        ({"silent_s": 60.0, "telling": False}, 0.05, 60.0),
        ({"silent_s": 0.4, "telling": True}, 0.05, 0.4),
        ({"silent_s": 60.0, "telling": True, "same_place": False}, 0.0, 60.0),
        ({"silent_s": 60.0, "telling": True, "same_place": None}, 0.05, 60.0),
        ({"span_s": 60.0, "cpu_s": 0.4}, 60.0, 90.0),
        ({"span_s": 60.0, "cpu_s": 6.0}, 0.05, 90.0),
        ({"span_s": 60.0, "cpu_s": None}, 0.05, 90.0),
    ],
    ids=[
        "nothing tells one visit from many",
        "silent since before it was started",
        "no word to another rank since before the first look",
        "its collectives would not show there",
        "it has just talked to another rank",
        "it was met in several places",
        "its stack could not be read",
        "a minute without a step's worth of processor",
        "a minute with the processor of some steps",
        "nobody knows what it used",
    ],
)
def test_who_polls_has_waited_since_it_came_to_its_line(
    shown: dict[str, object], at_least_s: float, at_most_s: float
) -> None:
    assert stillness(replace(POLLS, **shown)) == Stillness(at_least_s, at_most_s, wakes=True)  # type: ignore[arg-type] # fields of Track


def test_what_runs_or_was_seen_once_has_not_slept_through() -> None:
    assert slept_through(SLEEPS)
    assert not slept_through(POLLS)
    assert not slept_through(replace(SLEEPS, runs=True))
    assert not slept_through(replace(SLEEPS, looks=1))
    assert not slept_through(replace(SLEEPS, cpu_s=1.0))
