"""A rank that is gone, whose forked child lives on."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import ALL_REDUCE, STD, job, own, process, rank, total
from trainprobe.causes.collectives.rank_exited_early import CAUSE as EXITED
from trainprobe.causes.collectives.rank_killed import CAUSE as KILLED
from trainprobe.causes.processes.queue_deadlock import CAUSE as QUEUE
from trainprobe.causes.scene import Scene
from trainprobe.stacks.frames import Frame

FORKED = (
    *own("main", 20),
    Frame("_bootstrap", STD + "multiprocessing/process.py", 314),
    Frame("drain", "/job/records.py", 9),
    Frame("Queue.get", STD + "multiprocessing/queues.py", 103),
)


def scene_of(role: str, stack: tuple[Frame, ...]) -> Scene:
    child = process(140, stack, stack, rank=2, role=role)
    return live_rows.scene_of(
        replace(job(3, absent=(2,)), launcher="bare", launcher_pid=None),
        rank(0, ALL_REDUCE, ALL_REDUCE),
        rank(1, ALL_REDUCE, ALL_REDUCE),
        child,
    )


def test_a_child_that_multiprocessing_made_outlives_only_a_kill() -> None:
    scene = scene_of("child", FORKED)

    assert total(KILLED, scene) - total(EXITED, scene) >= 20
    assert total(QUEUE, scene) == 0, "nobody waits for the queue of a rank that is gone"


def test_another_program_outlives_an_orderly_end_as_well() -> None:
    scene = scene_of("child", own("serve", 7))

    assert total(KILLED, scene) == total(EXITED, scene)


def test_nobody_waits_for_the_children_of_a_rank_that_is_a_zombie() -> None:
    zombie = process(102, rank=2, state="Z")
    child = process(140, FORKED, FORKED, rank=2, role="child")
    ranks = [rank(one, ALL_REDUCE, ALL_REDUCE) for one in (0, 1)]
    scene = live_rows.scene_of(replace(job(3), launcher="bare"), *ranks, zombie, child)

    assert total(QUEUE, scene) == 0
