"""Ranks that stand in new_group with different numbers."""

from __future__ import annotations

import pytest

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import C10D, CELL, job, own, rank
from trainprobe.causes.collectives.rank_conditional_collective import CAUSE as CONDITIONAL
from trainprobe.causes.group_numbers import numbers_say
from trainprobe.causes.network.rendezvous_incomplete import CAUSE as INCOMPLETE
from trainprobe.causes.scene import Scene
from trainprobe.collect.collectors.awaited import AwaitedValue
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame

MAKES = (
    *own("stats", 9),
    Frame("new_group", C10D, 5863),
    Frame("_new_process_group_helper", C10D, 2169),
)


def scene_of(numbers: dict[int, str], size: int = 4, world: int = 4) -> Scene:
    facts: list[Fact] = [
        AwaitedValue(("E9",), CELL, one, pid=100 + one, name=name, value=value)
        for one, number in numbers.items()
        for name, value in (("group_name", number), ("group_size", str(size)))
    ]
    ranks = (rank(one, MAKES, MAKES) for one in range(world))
    return live_rows.scene_of(job(world), *ranks, facts)


@pytest.mark.parametrize(
    ("numbers", "odd"),
    [
        ({0: "'6'", 1: "'6'", 2: "'5'", 3: "'5'"}, (0, 1)),
        ({0: "'6'", 1: "'5'", 2: "'5'", 3: "'5'"}, (0,)),
        ({0: "'6'", 1: "'5'", 2: "'6'", 3: "'6'"}, (1,)),
        ({0: "'6'", 1: "'6'", 2: "'5'"}, (0, 1)),  # the fourth has come past it
    ],
)
def test_who_called_new_group_more_or_less_often_is_odd(
    numbers: dict[int, str], odd: tuple[int, ...]
) -> None:
    scene = scene_of(numbers)

    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene) == odd
    assert "process group 6" in CONDITIONAL.summary(scene)
    assert max(one.points for one in CONDITIONAL.weigh(scene)) == 26
    assert min(one.points for one in INCOMPLETE.weigh(scene)) == -26


def test_one_number_or_a_hash_says_nothing() -> None:
    assert numbers_say(scene_of(dict.fromkeys(range(4), "'5'"))) == ""
    assert numbers_say(scene_of({0: "'6f1e'", 1: "'5ab0'"})) == ""
    assert numbers_say(scene_of({0: "'\u00b2'", 1: "'5'"})) == ""


def test_groups_of_some_ranks_may_be_made_side_by_side() -> None:
    assert numbers_say(scene_of({0: "'5'", 1: "'5'", 2: "'6'", 3: "'6'"}, size=3)) == ""
