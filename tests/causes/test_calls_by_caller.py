"""One line of a helper that ranks reach from two lines of their own is two calls."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits.live_rows import C10D, CELL, MAIN, rank, site
from trainprobe import causes
from trainprobe.causes.diverging_calls import camps, places
from trainprobe.causes.scene import Scene
from trainprobe.facts import Block, Facts, LintFinding, Skip
from trainprobe.facts.thread_places import join_threads
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

WORLD = (0, 1, 2, 3)
GROUP = SuspectGroup(CELL, "live", WORLD, "stuck-inside", "nobody comes out", "hang", world_size=4)
FILE = "/job/train.py"
LOOP, IF = Block("for", 51, "for axis in axes:"), Block("if", 52, 'if axis == "tp":')


def stack(line: int) -> tuple[Frame, ...]:
    reduce = Frame("_reduce", FILE, 42), Frame("all_reduce", C10D, 3252)
    return (MAIN, Frame("sync", FILE, line), *reduce)


def scene(*lines: int) -> Scene:
    ranks = [rank(number, stack(line), stack(line)) for number, line in enumerate(lines)]
    source = [
        site(42, "dist.all_reduce(flat, group=self.groups[axis])"),
        replace(site(53, 'self._reduce("tp", self.shared)'), blocks=(LOOP, IF)),
        replace(
            site(55, 'self._reduce("dp", self.own)'), blocks=(LOOP, replace(IF, branch="orelse"))
        ),
    ]
    return Scene(Facts(join_threads([*(fact for each in ranks for fact in each), *source])), GROUP)


def test_ranks_that_call_a_helper_from_different_lines_are_in_two_camps() -> None:
    found = places(scene(53, 55, 55, 53))
    assert camps(found) == ((0, 3), (1, 2))
    assert {place.line for place in found.values()} == {53, 55}
    same = places(scene(53, 53, 53, 53))
    assert camps(same) == (WORLD,)
    assert {place.line for place in same.values()} == {42}


def test_what_the_callers_pass_tells_the_groups_apart() -> None:
    cause = next(one for one in causes.built() if one.id == "collective-order-mismatch")
    crossed = scene(53, 55, 55, 53)
    assert any("'tp'" in one.says and "'dp'" in one.says for one in cause.weigh(crossed))
    assert cause.ranks(crossed) == WORLD
    assert "ranks 0 and 3 in all_reduce at train.py:53" in cause.summary(crossed)


def test_who_stands_at_the_later_of_two_lines_has_gone_past_the_earlier() -> None:
    """Rank 1 waits on the small group; the line below is on the world, where the rest waits."""
    ranks = [rank(number, stack(line), stack(line)) for number, line in enumerate((55, 53, 55, 55))]
    source = [
        replace(
            site(42, "dist.all_reduce(flat, group=group)"),
            skips=(Skip(40, "if flat is None:", "continue", 39),),
        ),
        replace(site(53, "self._reduce(self.own, expert_group)"), blocks=(LOOP,)),
        replace(site(55, "self._reduce(self.shared, world)"), blocks=(LOOP,)),
    ]
    past = Scene(Facts(join_threads([*(one for each in ranks for one in each), *source])), GROUP)
    left_out = next(one for one in causes.built() if one.id == "rank-conditional-collective")
    crossed = next(one for one in causes.built() if one.id == "collective-order-mismatch")

    assert left_out.ranks(past) == (0, 2, 3)
    assert left_out.summary(past).startswith(
        "Rank 1 waits at train.py:53 on `expert_group`, which ranks 0, 2 and 3 have gone past"
    )
    assert "`if flat is None:`" in str(left_out.fixes_for(past))
    points = {one.id: sum(w.points for w in one.weigh(past)) for one in (left_out, crossed)}
    assert points[left_out.id] > points[crossed.id] + 10


def test_in_one_call_of_all_ranks_one_may_be_a_call_further_on() -> None:
    cause = next(one for one in causes.built() if one.id == "rank-conditional-collective")
    same = scene(53, 53, 53, 53)
    assert [one.points for one in cause.weigh(same)] == [-13]

    finding = LintFinding(
        (), CELL, rule=cause.id, cause=cause.id, file=FILE, line=9, says="x", confidence=0.95
    )
    read = Scene(Facts([*same.facts.all, finding]), GROUP)
    assert [one.points for one in cause.weigh(read)] == [6]
    assert "one of them may have made a call more, at train.py:9" in cause.summary(read)
    doubtful = replace(finding, confidence=0.5)
    unsure = Scene(Facts([*same.facts.all, doubtful]), GROUP)
    assert [one.points for one in cause.weigh(unsure)] == [-13]
