"""What to change where the ranks' calls part, by the source around their calls."""

from __future__ import annotations

from tests.causes.fixtures import load
from tests.unit.waits.live_rows import CELL, facts_of
from trainprobe.causes.cause import Cause
from trainprobe.causes.collectives.collective_order_mismatch import CAUSE as ORDER
from trainprobe.causes.collectives.rank_conditional_collective import CAUSE as CONDITIONAL
from trainprobe.causes.phrases import Fixes
from trainprobe.causes.scene import Scene
from trainprobe.collect.collectors.source import SourceSite
from trainprobe.facts import MainThread
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.source import Block
from trainprobe.waits import SuspectGroup


def waits_in_recv(rank: int, line: int) -> MainThread:
    return MainThread(
        (f"E{rank}",),
        CELL,
        rank,
        pid=60 + rank,
        source="py-spy",
        leaf="comm-wait",
        op="recv",
        user_file="/job/stage.py",
        user_line=line,
        frames=(Frame("step", "/job/stage.py", line),),
    )


def received(line: int, loop: str) -> SourceSite:
    block = Block("for", line - 1, loop)
    return SourceSite((), CELL, file="/job/stage.py", line=line, blocks=(block,))


def scene_of(*facts: SourceSite) -> Scene:
    group = SuspectGroup(CELL, CELL, (0, 1), "cycle", "", "hang", world_size=2)
    return Scene(facts_of(waits_in_recv(0, 12), waits_in_recv(1, 22), *facts), group)


def fixes_of(cause: Cause, scene: Scene) -> Fixes:
    assert callable(cause.fixes)
    return cause.fixes(scene)


def test_loops_of_sends_and_receives_are_to_be_of_one_length() -> None:
    first = fixes_of(
        ORDER, scene_of(received(12, "for part in parts:"), received(22, "for _ in range(8):"))
    )[0]

    assert first.title == "Send as often as is received"
    assert first.steps[:2] == (
        "rank 0's recv at stage.py:12 goes round with `for part in parts:` (line 11)",
        "rank 1's recv at stage.py:22 goes round with `for _ in range(8):` (line 21)",
    )


def test_a_loop_that_all_are_in_is_not_counted() -> None:
    loop = Block("for", 3, "for batch in loader:")
    both = [
        SourceSite((), CELL, file="/job/stage.py", line=line, blocks=(loop,)) for line in (12, 22)
    ]

    assert fixes_of(ORDER, scene_of(*both))[0].title == "Pair each receive with a send"


def test_the_condition_is_named_with_its_file_and_the_wrapper_as_what_to_leave_out() -> None:
    scene = load("_confusions", "live_evaluation_on_one_rank_loops_over_data").scene

    assert "at score.py:7 under `if rank == 0:` (t.py:30)" in CONDITIONAL.summary(scene)
    unwrap, move, *_ = fixes_of(CONDITIONAL, scene)
    assert "at score.py:7 call model.module(...)" in unwrap.steps[0]
    assert "`if rank == 0:` (t.py:30)" in move.steps[0]
