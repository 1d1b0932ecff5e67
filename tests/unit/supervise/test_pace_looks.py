"""A job that goes on is looked at again and again, ever more rarely."""

from __future__ import annotations

import itertools

from trainprobe.supervise.pace_looks import APART_S, FIRST_S, FIRST_STEPS, PaceLooks


def looks_at(steps_per_s: float, until_s: int, *, answered: bool = True) -> list[int]:
    """The seconds at which a job of so many steps is looked at; a look takes two."""
    looks, found = PaceLooks(), []
    for second in range(until_s):
        if looks.due(int(second * steps_per_s), second):
            found.append(second)
            looks.begun()
            looks.ended(int((second + 2) * steps_per_s), second + 2, answered=answered)
    return found


def test_a_rank_that_becomes_slow_later_is_looked_at_too() -> None:
    """Step 60 of two a second: the next look comes before step 150."""
    found = looks_at(2.0, 600)
    assert found[0] == FIRST_STEPS / 2
    assert any(60 < 2 * second < 150 for second in found), found


def test_looks_become_rare() -> None:
    day = looks_at(0.0, 86_400)
    assert day[0] == FIRST_S
    assert len(day) <= 8
    assert all(later > 2 * earlier for earlier, later in itertools.pairwise(day))


def test_short_steps_are_no_reason_to_look_all_the_time() -> None:
    found = looks_at(100.0, 3600)
    assert len(found) < 12
    assert all(later - earlier >= APART_S for earlier, later in itertools.pairwise(found))


def test_a_look_without_an_answer_is_made_again_sooner() -> None:
    assert len(looks_at(1.0, 600, answered=False)) > len(looks_at(1.0, 600))


def test_what_a_look_may_explain_is_looked_at_at_once() -> None:
    looks = PaceLooks()
    looks.want()
    assert not looks.due(3, 1.0)
    assert looks.due(50, 20.0)
    looks.begun()
    looks.ended(52, 22.0, answered=True)
    assert not looks.due(55, 23.0)
    looks.want()
    assert looks.due(56, 24.0)
