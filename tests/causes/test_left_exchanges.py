"""A send whose partner is passes further on: who left an exchange out."""

from __future__ import annotations

import pytest

from tests.causes.test_parting_values import TRAIN, in_call
from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import C10D, CELL, job, rank
from trainprobe.causes.collectives.collective_order_mismatch import CAUSE
from trainprobe.causes.left_exchanges import left_exchange
from trainprobe.causes.scene import Scene
from trainprobe.facts import Block, FrameValue, Skip, SourceSite

STEP = Block("for", 50, "for step in range(6000):")
SKIP = Skip(54, "if loss is None:", "continue", 50)
SITES = [
    SourceSite(("E2",), CELL, None, TRAIN, line, "fit", "", (STEP,), (SKIP,)) for line in (57, 59)
]


def scene_of(*passes: int) -> Scene:
    """Rank 0 sends to rank 1, and both 1 and 2 receive from 0, in these passes of the loop."""
    stacks = [in_call(57, "send"), in_call(59, "recv"), in_call(59, "recv")]
    peers = [("send", "dst", "1"), ("recv", "src", "0"), ("recv", "src", "0")]
    facts = []
    for one, (number, (function, name, peer)) in enumerate(zip(passes, peers, strict=True)):
        told = ((TRAIN, "fit", "step", str(number)), (C10D, function, name, peer))
        facts += [FrameValue((f"E9{one}",), CELL, one, 100 + one, *value) for value in told]
    ranks = (rank(one, stack, stack) for one, stack in enumerate(stacks))
    return live_rows.scene_of(job(3), *ranks, [*facts, *SITES])


def test_who_is_ahead_of_the_rank_that_waits_for_it_left_an_exchange_out() -> None:
    scene = scene_of(67, 69, 68)

    left = left_exchange(scene)

    assert left is not None
    assert (left.rank, left.waits, left.passes) == (1, 0, 2)
    assert CAUSE.ranks(scene) == (1,)
    assert "`if loss is None:` (line 54)" in CAUSE.summary(scene)


@pytest.mark.parametrize("passes", [(67, 67, 67), (69, 68, 68)])
def test_in_one_pass_or_with_others_behind_nobody_left_one_out(passes: tuple[int, ...]) -> None:
    scene = scene_of(*passes)

    assert left_exchange(scene) is None
    assert CAUSE.ranks(scene) == scene.ranks
