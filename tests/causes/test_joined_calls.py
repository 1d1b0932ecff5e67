"""Who joins a thread that asks a service waits for that service."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import CELL, STD, job, own, rank, scene_of
from trainprobe import causes
from trainprobe.causes.remote_calls import talking
from trainprobe.causes.scene import Scene
from trainprobe.facts import Thread
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame

JOINS = (*own("close", 44), Frame("Thread.join", STD + "threading.py", 1119))
ASKS = (
    *own("upload", 25)[1:],
    Frame("urlopen", STD + "urllib/request.py", 216),
    Frame("SocketIO.readinto", STD + "socket.py", 718),
)
QUEUES = (*own("drain", 30)[1:], Frame("Queue.get", STD + "queue.py", 171))


def scene(*threads: tuple[Frame, ...], absent: tuple[int, ...] = ()) -> Scene:
    others: list[Fact] = [
        Thread(("E9",), CELL, 0, pid=100, look=2, name=f"T{n}", os_thread_id=200 + n, frames=frames)
        for n, frames in enumerate(threads)
    ]
    beside = [] if absent else rank(1)
    return scene_of(job(2, absent=absent), rank(0, JOINS, JOINS), beside, others)


def test_the_thread_that_asks_is_shown_in_place_of_the_one_that_joins_it() -> None:
    (asks,) = talking(scene(ASKS, QUEUES))

    assert (asks.leaf, asks.frames, asks.where) == ("net-io", ASKS, "train.py:25 in upload")


@pytest.mark.parametrize("threads", [(QUEUES,), (ASKS, ASKS)])
def test_nobody_asks_where_no_thread_does_or_nobody_knows_which_is_joined(
    threads: tuple[tuple[Frame, ...], ...],
) -> None:
    assert talking(scene(*threads)) == ()


def test_who_asks_a_service_does_not_need_a_rank_that_has_left() -> None:
    left = next(one for one in causes.built() if one.id == "rank-exited-early")
    weighed = {
        threads: list(left.weigh(scene(*threads, absent=(1,)))) for threads in ((ASKS,), (QUEUES,))
    }

    assert [one.points for one in weighed[ASKS,]] == [-13]
    assert weighed[ASKS,][0].says.startswith("Rank 0 (pid 100) stands in a network call")
    assert sum(one.points for one in weighed[QUEUES,]) > 0
