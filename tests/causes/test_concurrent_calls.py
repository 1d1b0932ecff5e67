"""Two threads of each rank in collectives at once are an order that nobody keeps."""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import C10D, CELL, rank, site
from trainprobe import causes
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, Thread
from trainprobe.facts.thread_places import join_threads
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

GROUP = SuspectGroup(CELL, "live", (0, 1), "stuck-inside", "nobody comes out", "hang", world_size=2)
SAVES = (
    Frame("_write", "/job/saver.py", 43),
    Frame("all_gather_object", C10D, 3252),
)


def saver(number: int) -> Thread:
    return Thread(
        (f"E{number}",), CELL, number, pid=100 + number, look=2, name="ckpt_0", frames=SAVES
    )


def points(*facts: Fact) -> int:
    """What speaks for another order on the ground of stacks."""
    cause = next(one for one in causes.built() if one.id == "collective-order-mismatch")
    scene = Scene(Facts(join_threads([*rank(0), *rank(1), *facts])), GROUP)
    found = [one for one in cause.weigh(scene) if "at once" in one.says]
    if found:
        assert "saver.py:43" in cause.summary(scene)
        assert "saver.py:43" in str(cause.fixes_for(scene))
    return sum(one.points for one in found)


def test_two_threads_of_every_rank_in_collectives_speak_for_another_order() -> None:
    assert points(saver(0), saver(1)) == 13
    assert points(saver(0)) == 0  # the other rank's thread may only be late


@pytest.mark.parametrize(("text", "worth"), [("gather(x, group=own)", 3), ("gather(x)", 13)])
def test_a_call_on_a_group_of_its_own_says_little(text: str, worth: int) -> None:
    assert points(saver(0), saver(1), site(43, text, file="/job/saver.py")) == worth
