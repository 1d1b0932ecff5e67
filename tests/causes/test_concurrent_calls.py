"""Two threads of a rank in collectives at once are an order that nobody keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import C10D, CELL, MAIN, SITE, STD, rank, site
from trainprobe import causes
from trainprobe.causes.concurrent_calls import concurrent_calls
from trainprobe.causes.diverging_calls import places
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, Thread
from trainprobe.facts.thread_places import join_threads
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

GROUP = SuspectGroup(CELL, "live", (0, 1), "stuck-inside", "nobody comes out", "hang", world_size=2)
GATHERS = Frame("all_gather_object", C10D, 3252)
STARTED = (
    Frame("Thread._bootstrap", STD + "threading.py", 1002),
    Frame("_worker", STD + "concurrent/futures/thread.py", 83),
)
SAVES = (*STARTED, Frame("_write", "/job/saver.py", 43), GATHERS)
BACKWARD = (
    MAIN,
    Frame("Tensor.backward", SITE + "torch/_tensor.py", 648),
    Frame("_engine_run_backward", SITE + "torch/autograd/graph.py", 979),
)


def saver(number: int, frames: Sequence[Frame] = SAVES) -> Thread:
    return Thread(
        (f"E{number}",), CELL, number, pid=100 + number, look=2, name="ckpt_0", frames=tuple(frames)
    )


def scene_of(*facts: Fact | list[Fact], group: SuspectGroup = GROUP) -> Scene:
    flat = [one for fact in facts for one in (fact if isinstance(fact, list) else [fact])]
    return Scene(Facts(join_threads(flat)), group)


def points(*facts: Fact, main: Sequence[Frame] = ()) -> int:
    """What speaks for another order on the ground of stacks."""
    cause = next(one for one in causes.built() if one.id == "collective-order-mismatch")
    looks = (main, main) if main else ()
    scene = scene_of(rank(0, *looks), rank(1, *looks), *facts)
    found = [one for one in cause.weigh(scene) if "at once" in one.says]
    if found:
        assert "saver.py:43" in cause.summary(scene)
        assert "saver.py:43" in str(cause.fixes_for(scene))
    return sum(one.points for one in found)


def test_two_threads_of_every_rank_in_collectives_speak_for_another_order() -> None:
    assert points(saver(0), saver(1)) == 13
    assert points(saver(0), saver(1), main=BACKWARD) == 13


def test_a_second_thread_of_one_rank_is_what_came_between_where_all_main_threads_have_met() -> None:
    assert points(saver(0)) == 13
    apart = scene_of(rank(0), rank(1, BACKWARD, BACKWARD), saver(0))
    assert not concurrent_calls(apart)  # where the main threads part, that decides


def test_what_autograd_calls_in_a_thread_of_its_own_is_no_second_call() -> None:
    hook = (Frame("backward", "/job/layers.py", 12), GATHERS)
    assert points(saver(0, hook), saver(1, hook), main=BACKWARD) == 0


def test_a_thread_of_torchs_own_is_named_by_where_it_begins() -> None:
    checkpoint = SITE + "torch/distributed/checkpoint/"
    enters = Frame("save_wrapper", checkpoint + "_async_thread_executor.py", 30)
    saves = Frame("_save_state_dict", checkpoint + "state_dict_saver.py", 487)
    scene = scene_of(rank(0), rank(1), saver(0, (*STARTED, enters, saves, GATHERS)))
    cause = next(one for one in causes.built() if one.id == "collective-order-mismatch")

    assert "Two threads of rank 0 make" in cause.summary(scene)
    assert "_async_thread_executor.py:30" in cause.summary(scene)
    assert "process_group=own" in str(cause.fixes_for(scene))
    assert cause.ranks is not None
    assert cause.ranks(scene) == (0,)


def test_a_rank_whose_thread_did_not_come_is_told_what_that_thread_does_elsewhere() -> None:
    waits = (MAIN, Frame("Event.wait", STD + "threading.py", 629))
    idle = (*STARTED, Frame("_write", "/job/saver.py", 41), Frame("get", STD + "queue.py", 171))
    group = replace(GROUP, ranks=(1,), how="never-joined")
    scene = scene_of(
        rank(0, waits, waits), rank(1, waits, waits), saver(0), saver(1, idle), group=group
    )
    cause = next(one for one in causes.built() if one.id == "rank-stuck")

    assert "which on rank 0 is inside all_gather_object at saver.py:43" in cause.summary(scene)
    assert any("Rank 0 waits in a collective" in one.says for one in cause.weigh(scene))


@pytest.mark.parametrize(("text", "worth"), [("gather(x, group=own)", 3), ("gather(x)", 13)])
def test_a_call_on_a_group_of_its_own_says_little(text: str, worth: int) -> None:
    assert points(saver(0), saver(1), site(43, text, file="/job/saver.py")) == worth


def test_a_main_thread_that_waits_for_a_second_one_stands_at_the_call_of_that_one() -> None:
    waits = (MAIN, Frame("Future.result", STD + "concurrent/futures/_base.py", 451))
    scene = scene_of(rank(0, waits, waits), rank(1, BACKWARD, BACKWARD), saver(0))

    assert {one: str(place) for one, place in places(scene).items()} == {
        0: "all_gather_object at saver.py:43",
        1: "backward at train.py:99",
    }
