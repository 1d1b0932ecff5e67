"""A rank whose main thread has come to its end, while a thread of its own keeps the process."""

from __future__ import annotations

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import ALL_REDUCE, STD, job, own, rank, total
from trainprobe.causes.collectives.rank_exited_early import CAUSE as EXITED
from trainprobe.causes.collectives.rank_stuck import CAUSE as STUCK
from trainprobe.causes.scene import Scene
from trainprobe.facts import Thread
from trainprobe.stacks.frames import Frame

AT_ITS_END = (Frame("_shutdown", STD + "threading.py", 1590),)
WRITES = own("write", 18)


def scene_of(*others: tuple[Frame, ...]) -> Scene:
    thread = Thread(
        ("E9",), "job", 1, pid=101, role="rank", look=2, os_thread_id=901, frames=WRITES
    )
    rest = (rank(place, stack, stack) for place, stack in zip((0, 2), others, strict=True))
    return live_rows.scene_of(job(3), rank(1, AT_ITS_END, AT_ITS_END), [thread], *rest)


def test_it_has_left_early_where_others_still_need_it() -> None:
    scene = scene_of(ALL_REDUCE, ALL_REDUCE)

    assert total(EXITED, scene) == 23
    assert total(EXITED, scene) > total(STUCK, scene)
    assert "came to the end of the program" in EXITED.summary(scene)
    assert "train.py:18" in EXITED.summary(scene)


def test_where_nobody_waits_for_it_the_thread_is_what_hangs() -> None:
    scene = scene_of(AT_ITS_END, AT_ITS_END)

    assert total(EXITED, scene) == 0
    assert total(STUCK, scene) >= 13
