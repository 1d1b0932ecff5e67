"""Whose lock a forked child waits for, and whether it was forked at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.waits.live_rows import CELL, LOADER, MAIN, STD, own, process, rank, site
from trainprobe import causes
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts
from trainprobe.facts.thread_places import join_threads
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

GROUP = SuspectGroup(CELL, "job", (1,), "never-joined", "it stands", "hang", world_size=2)
LOADS = (
    *own("train", 20),
    Frame("_get_data", LOADER, 1130),
    Frame("Queue.get", STD + "multiprocessing/queues.py", 113),
)
TAKES = (MAIN, Frame("Counters.incr", "/job/count.py", 9))
AWAITS = (*TAKES, Frame("Condition.wait", STD + "threading.py", 327))


def points(child: tuple[Frame, ...], parent: tuple[Frame, ...] = LOADS, **more: Any) -> int:
    facts: list[Fact] = [
        *rank(0),
        *rank(1, parent, parent),
        *process(
            200, child, child, rank=1, role="child", ppid=101, threads=1, wchan="futex_wait", **more
        ),
        site(9, "with self._lock:", file="/job/count.py"),
    ]
    cause = next(one for one in causes.built() if one.id == "fork-inherited-lock")
    return sum(one.points for one in cause.weigh(Scene(Facts(join_threads(facts)), GROUP)))


def test_a_forked_child_in_the_acquire_of_a_lock() -> None:
    assert points(TAKES) == points(TAKES, forked=True) == 29


@pytest.mark.parametrize("name", ["Condition.wait", "Event.wait", "Thread.join"])
def test_who_waits_for_a_sign_wants_no_lock(name: str) -> None:
    assert points((*TAKES, Frame(name, STD + "threading.py", 327))) == 0


def test_a_helper_that_was_started_as_a_program_inherited_no_lock() -> None:
    assert points(TAKES, forked=False) < 0


def test_a_child_for_which_nobody_waits_weighs_less() -> None:
    assert points(TAKES, own("reads", 31)) == 17
