"""One rank that does a task of its own again and again while the others wait, and one that computes
alone of which nobody knows if it gets on.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import ALL_REDUCE, job, own, rank, scene_of, site, total, view
from trainprobe.causes.classes import classes
from trainprobe.causes.collectives import rank0_long_task, rank_stuck, straggler_rank
from trainprobe.causes.lone_workers import may_go_round
from trainprobe.facts import LoopValue, Samples, Spell
from trainprobe.model.facts import Fact

RANK_0 = site(40, "scores = validate(model)", ("for", "for epoch in"), ("if", "if rank == 0:"))
ALL_RANKS = site(40, "scores = validate(model)", ("for", "for epoch in range(9):"))
ALONE = own("validate", 40)
TRAINS = own("forward", 8)


def epochs(number: int, *, alone_s: float, times: int, train_s: float = 1.0) -> Samples:
    """So often: all ranks train in step, and then rank 0 alone works for `alone_s`."""
    spells, at = [], 0.0
    for _ in range(times):
        ends = at + train_s
        while at < ends - 0.01:
            spells.append(Spell(at, at + 0.1, TRAINS, "python-run"))
            spells.append(Spell(at + 0.1, at + 0.2, ALL_REDUCE, "comm-wait"))
            at += 0.2
        frames, leaf = (ALONE, "python-run") if number == 0 else (ALL_REDUCE, "comm-wait")
        spells.append(Spell(at, at + alone_s, frames, leaf))
        at += alone_s
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=tuple(spells))


def moving(world: int) -> list[Fact]:
    return [fact for number in range(world) for fact in rank(number, own("f", 5), own("f", 7))]


def validating(alone_s: float, times: int, source: Fact) -> list[Fact]:
    return [
        job(3),
        *moving(3),
        source,
        *(epochs(number, alone_s=alone_s, times=times) for number in range(3)),
    ]


def test_a_task_of_one_rank_that_comes_again_and_again_makes_the_job_slow() -> None:
    facts = validating(2.0, 3, RANK_0)

    found = view(*facts)

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("slow", (0,), (1, 2))
    assert "works alone at train.py:40 in validate, 3 times in 9 s" in found.says
    scene = scene_of(*facts)
    assert total(rank0_long_task.CAUSE, scene) > 15 > total(straggler_rank.CAUSE, scene)
    assert rank0_long_task.CAUSE.fixes_for(scene)[0].title == "Evaluate on all ranks"


@pytest.mark.parametrize(
    ("alone_s", "times", "source"),
    [(0.4, 3, RANK_0), (4.0, 1, RANK_0), (2.0, 2, ALL_RANKS)],
    ids=["it costs little", "one pause", "two long steps may be one rank's by chance"],
)
def test_a_pause_or_chance_is_no_such_task(alone_s: float, times: int, source: Fact) -> None:
    assert view(*validating(alone_s, times, source)).verdict != "slow"


def alone_for(waited_s: float, *, others: int = 2, **more: object) -> list[Fact]:
    """Rank 0 runs in a loop of its own, with rank 2 beside it where only rank 1 waits."""
    busy = own("pack", 30), own("pack", 31)
    waiting = [rank(number, age_s=waited_s) for number in range(1, 1 + others)]
    working = [
        fact
        for number in (0, *range(1 + others, 3))
        for fact in rank(number, *busy, state="R", age_s=0.0, **more)
    ]
    return [job(3), *working, *(fact for facts in waiting for fact in facts)]


def test_who_works_alone_for_long_and_is_not_seen_to_get_on_may_go_round_for_ever() -> None:
    scene = scene_of(*alone_for(40.0))

    assert may_go_round(scene) is not None
    assert [one.id for one in classes(scene)] == ["slow-rank", "works-alone"]
    assert total(rank_stuck.CAUSE, scene) == total(rank0_long_task.CAUSE, scene) > 0


def test_a_condition_on_the_rank_or_a_value_that_moves_on_makes_it_a_task() -> None:
    own_task = site(31, "add(row)", ("if", "if rank == 0:"))
    moves = LoopValue(
        ("E9",), "job", 0, pid=100, name="row", function="pack", reads=9, seen=tuple(range(9))
    )
    for known in (own_task, moves):
        scene = scene_of(*alone_for(40.0), known)
        assert may_go_round(scene) is None
        assert total(rank0_long_task.CAUSE, scene) > total(rank_stuck.CAUSE, scene)


def test_health_is_earned_by_whoever_keeps_others_waiting_for_long() -> None:
    assert view(*alone_for(40.0, others=1)).verdict == "undetermined"
    assert view(*alone_for(9.0, others=1)).verdict == "healthy"
    assert view(*alone_for(40.0, others=1, wrote_bytes=90_000)).verdict == "healthy"


def test_who_passes_through_a_loop_without_a_value_that_moves_on_goes_round() -> None:
    passes = LoopValue(
        ("E9",), "job", 0, pid=100, name="file", function="pack", reads=9, seen=(0, 1) * 4 + (0,)
    )
    vain = replace(passes, file="/job/train.py", opaque=True)
    loop = site(31, "file = open(path)", ("while", "while True:"))
    batches = site(31, "score(file)", ("for", "for file in files:"))

    found = view(*alone_for(40.0), vain, loop)

    assert (found.verdict, found.groups[0].ranks) == ("hung", (0,))
    scene = scene_of(*alone_for(40.0), vain, loop)
    assert total(rank_stuck.CAUSE, scene) > total(rank0_long_task.CAUSE, scene)
    assert "goes round" in rank_stuck.CAUSE.summary(scene)
    assert view(*alone_for(20.0), vain, loop).verdict == "healthy"
    assert view(*alone_for(40.0), vain, batches).verdict == "slow"


@pytest.mark.parametrize("others_too", [False, True])
def test_what_no_other_rank_is_met_in_is_a_task_without_a_condition_too(
    *, others_too: bool
) -> None:
    facts = validating(2.0, 3, ALL_RANKS)
    if others_too:
        facts = [
            replace(one, spells=(*one.spells, Spell(90.0, 90.1, ALONE, "python-run")))
            if isinstance(one, Samples) and one.rank == 1
            else one
            for one in facts
        ]

    found = view(*facts)

    assert (found.verdict == "slow") is not others_too
    if not others_too:
        assert "works alone at train.py:40 in validate, 3 times" in found.says
        assert total(rank0_long_task.CAUSE, scene_of(*facts)) > 15
