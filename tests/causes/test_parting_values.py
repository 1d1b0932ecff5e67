"""Ranks that wait for each other, told apart by their counters, items and flags."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import C10D, CELL, MAIN, job, rank
from trainprobe.causes.collectives.collective_order_mismatch import CAUSE as ORDER
from trainprobe.causes.collectives.rank_conditional_collective import CAUSE as CONDITIONAL
from trainprobe.causes.collectives.uneven_inputs import CAUSE as UNEVEN
from trainprobe.causes.model.resume_mismatch import CAUSE as RESUMED
from trainprobe.causes.parting_values import begun_apart, behind, parted_values
from trainprobe.causes.scene import Scene
from trainprobe.collect.collectors.parting_values import FrameValue
from trainprobe.facts import Block, Skip, SourceSite
from trainprobe.stacks.frames import Frame

TRAIN = "/job/train.py"
EPOCH = Block("for", 50, "for epoch in range(args.epochs):")
STEP = Block("for", 53, "for it, batch in enumerate(loader):")
BACKWARD = "/env/lib/python3.11/site-packages/torch/autograd/graph.py"
Values = Mapping[int, Mapping[str, str]]


def in_step() -> tuple[Frame, ...]:
    return (MAIN, Frame("fit", TRAIN, 57), Frame("_engine_run_backward", BACKWARD, 824))


def in_call(line: int, op: str = "all_gather") -> tuple[Frame, ...]:
    return (MAIN, Frame("fit", TRAIN, line), Frame(op, C10D, 3252))


def site(line: int, *blocks: Block, exits: tuple[Skip, ...] = ()) -> SourceSite:
    return SourceSite(("E2",), CELL, None, TRAIN, line, "fit", "", blocks, exits=exits)


def scene_of(
    stacks: Mapping[int, tuple[Frame, ...]],
    values: Values,
    *sites: SourceSite,
    function: tuple[str, str] = (TRAIN, "fit"),
) -> Scene:
    facts = [
        FrameValue((f"E9{one}",), CELL, one, 100 + one, *function, name, value)
        for one, known in values.items()
        for name, value in known.items()
    ]
    ranks = (rank(one, stack, stack) for one, stack in stacks.items())
    return live_rows.scene_of(job(len(stacks)), *ranks, [*facts, *sites])


IN_LOOPS = (site(57, EPOCH, STEP), site(66, EPOCH))
APART = {0: in_call(66), 1: in_step()}


def points(cause: object, scene: Scene, family: str) -> list[int]:
    weigh = cause.weigh  # type: ignore[attr-defined] # a Cause
    return [one.points for one in weigh(scene) if one.family == family]


def test_who_ran_out_first_is_told_by_the_count() -> None:
    values = {0: {"epoch": "1", "it": "19"}, 1: {"epoch": "1", "it": "20"}}
    scene = scene_of(APART, values, *IN_LOOPS)

    late = behind(scene)
    assert late is not None
    assert (late.ranks, late.inside) == ((0,), False)
    assert points(UNEVEN, scene, "suspects-stack") == [10]
    assert "`it` is 19 on rank 0, 20 on rank 1" in UNEVEN.summary(scene)


def test_a_loop_that_counts_items_is_over_data_where_its_ends_differ() -> None:
    counting = Block("for", 53, "for start in range(0, len(mine), 8):")
    sites = (site(57, EPOCH, counting), site(66, EPOCH))
    values = {0: {"epoch": "1", "start": "152"}, 1: {"epoch": "1", "start": "160"}}

    assert points(UNEVEN, scene_of(APART, values, *sites), "source") == [13]
    assert points(UNEVEN, scene_of(APART, {}, *sites), "source") == []
    # the same number on all ranks, and left early
    fixed = Block("for", 53, "for start in range(0, 400, 8):")
    sites = (site(57, EPOCH, fixed), site(66, EPOCH))
    assert points(UNEVEN, scene_of(APART, values, *sites), "source") == []


def test_of_many_ranks_in_one_place_some_speak_for_all() -> None:
    stacks = {0: in_call(66), **dict.fromkeys(range(1, 12), in_step())}
    values = {0: {"epoch": "1", "it": "19"}, 3: {"epoch": "1", "it": "20"}}
    late = behind(scene_of(stacks, values, *IN_LOOPS))
    assert late is not None
    assert late.ranks == (0,)

    unlike = {**values, 4: {"epoch": "1", "it": "21"}}
    assert behind(scene_of(stacks, unlike, *IN_LOOPS)) is None


def test_who_is_an_epoch_behind_has_not_run_out() -> None:
    """The others went by the call in which it waits: they have been through that epoch."""
    values = {0: {"epoch": "1", "it": "19"}, 1: {"epoch": "2", "it": "0"}}
    scene = scene_of(APART, values, *IN_LOOPS)

    assert points(UNEVEN, scene, "suspects-stack") == [-13]
    assert points(UNEVEN, scene, "source") == []
    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene) == (0,)
    assert "`epoch` is 1 on rank 0, 2 on rank 1" in CONDITIONAL.summary(scene)


def test_an_outer_loop_without_a_count_leaves_it_open() -> None:
    forever = Block("while", 49, "while True:")
    sites = (site(57, forever, STEP), site(66, forever))
    scene = scene_of(APART, {0: {"it": "19"}, 1: {"it": "3"}}, *sites)

    assert behind(scene) is None


def test_a_pass_that_a_while_loop_counts_by_itself_may_be_counted_already() -> None:
    loop = Block("while", 49, "while step < last:")
    sites = (site(57, loop), site(66, loop))
    assert behind(scene_of(APART, {0: {"step": "19"}, 1: {"step": "20"}}, *sites)) is None

    late = behind(scene_of(APART, {0: {"step": "19"}, 1: {"step": "22"}}, *sites))
    assert late is not None
    assert late.ranks == (0,)


def test_as_many_batches_speak_against_uneven_inputs() -> None:
    values = {one: {"epoch": "1", "it": "19"} for one in (0, 1)}
    scene = scene_of(APART, values, *IN_LOOPS)

    assert points(UNEVEN, scene, "suspects-stack") == [-10]


def test_one_call_in_several_passes_means_that_some_made_a_call_more() -> None:
    stacks = dict.fromkeys(range(3), in_call(66))
    values = {one: {"epoch": "7" if one == 2 else "6"} for one in range(3)}
    scene = scene_of(stacks, values, site(66, EPOCH))

    assert points(CONDITIONAL, scene, "suspects-stack") == [10]
    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene) == (2,)
    assert "not in the same pass" in CONDITIONAL.summary(scene)
    assert points(ORDER, scene, "suspects-stack") == []


def test_one_call_for_several_things_is_another_order() -> None:
    names = Block("for", 60, "for name in touched:")
    stacks = dict.fromkeys(range(3), in_call(66, "broadcast"))
    values = {one: {"epoch": "6", "name": "'user'" if one else "'hour'"} for one in range(3)}
    scene = scene_of(stacks, values, site(66, EPOCH, names))

    assert points(ORDER, scene, "suspects-stack") == [13]
    assert "`name` is 'hour' on rank 0, 'user' on ranks 1 and 2" in ORDER.summary(scene)


def test_one_broadcast_from_several_ranks_is_another_order() -> None:
    stacks = dict.fromkeys(range(2), in_call(66, "broadcast"))
    values = {0: {"src": "1"}, 1: {"src": "0"}}
    scene = scene_of(stacks, values, function=(C10D, "broadcast"))

    assert points(ORDER, scene, "suspects-stack") == [10]


def test_a_flag_that_differs_is_named_and_the_rank_itself_is_not() -> None:
    stop = Block("while", 64, "while not stop and rank >= 0:")
    values = {0: {"stop": "True", "rank": "0"}, 1: {"stop": "False", "rank": "1"}}
    scene = scene_of(APART, values, site(66, stop), site(57, STEP))

    assert [one.name for one in parted_values(scene)] == ["stop"]
    assert points(CONDITIONAL, scene, "suspects-stack") == [6]


def test_a_condition_that_only_some_ranks_meet_is_named_with_its_values() -> None:
    """The average of the weights lives on rank 0 alone: an object there, and None elsewhere."""
    condition = Block("if", 64, "if ema is not None and step >= args.start:")
    values = {0: {"ema": "an object"}, 1: {"ema": "None"}}
    scene = scene_of(APART, values, site(66, condition), site(57, STEP))

    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene) == (0,)
    assert 13 in points(CONDITIONAL, scene, "source")
    assert points(CONDITIONAL, scene, "suspects-stack") == []
    assert "under `if ema is not None and step >= args.start:` (line 64)" in CONDITIONAL.summary(
        scene
    )
    assert "out of `if ema is not None" in str(CONDITIONAL.fixes_for(scene))


def test_an_object_beside_a_number_says_nothing() -> None:
    condition = Block("if", 64, "if best > 3:")
    values = {0: {"best": "an object"}, 1: {"best": "7"}}
    assert parted_values(scene_of(APART, values, site(66, condition), site(57, STEP))) == ()


def test_of_two_equal_camps_the_one_outside_of_the_backward_pass_is_odd() -> None:
    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene_of(APART, {})) == (0,)
    others = {0: in_call(66), 1: in_call(70, "barrier")}
    assert CONDITIONAL.ranks(scene_of(others, {})) == (0, 1)


def test_the_arguments_of_a_receive_name_its_peer() -> None:
    stacks = {one: in_call(66, "recv") for one in range(3)}
    values = {0: {"src": "2"}, 2: {"src": "1"}, 1: {"src": "0"}}
    facts = [
        FrameValue((f"E9{one}",), CELL, one, 100 + one, C10D, "recv", name, value)
        for one, known in values.items()
        for name, value in known.items()
    ]
    ranks = (rank(one, stack, stack) for one, stack in stacks.items())
    view = live_rows.view(job(3), *ranks, list(facts))

    (group,) = view.groups
    awaited = {(wait.waiter, wait.awaited) for wait in group.chain}
    assert awaited == {("rank 0", "rank 2"), ("rank 2", "rank 1"), ("rank 1", "rank 0")}
    assert all("perhaps" not in wait.how for wait in group.chain)


def test_a_loop_that_can_be_left_early_need_not_have_run_out() -> None:
    loop = Block("for", 53, "for x, y in loader:")
    stops = Skip(61, "if stopper.bad(loss):", "break", 53)
    counts = Skip(61, "if step >= args.max_steps:", "break", 53)

    scene = scene_of(APART, {}, site(57, loop, exits=(stops,)), site(66))
    assert points(UNEVEN, scene, "source") == [3]
    assert points(CONDITIONAL, scene, "source") == [10]
    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene) == (0,)
    assert "`if stopper.bad(loss):` (line 61)" in str(CONDITIONAL.fixes_for(scene))

    alike = scene_of(APART, {}, site(57, loop, exits=(counts,)), site(66))
    assert points(UNEVEN, alike, "source") == [13], "all ranks count alike"


def test_who_went_another_way_in_a_library_first_is_the_odd_one() -> None:
    """Below one line of the user: one rank evaluates, two begin a step, one is in its backward."""
    loop = "/env/lib/python3.11/site-packages/lightning/pytorch/loops/training_epoch_loop.py"
    top = (MAIN, Frame("fit", TRAIN, 24))
    steps = (*top, Frame("run", loop, 153), Frame("advance", loop, 300))
    begins = (*steps, Frame("broadcast", C10D, 3151))
    ahead = (*steps[:-1], Frame("advance", loop, 352), Frame("_engine_run_backward", BACKWARD, 824))
    ends = (*top, Frame("run", loop, 154), Frame("on_advance_end", loop, 406))
    evaluates = (*ends, Frame("barrier", C10D, 5356))

    scene = scene_of({0: begins, 1: evaluates, 2: ahead, 3: begins}, {})

    assert CONDITIONAL.ranks is not None
    assert CONDITIONAL.ranks(scene) == (1,)
    assert "barrier at train.py:24, in on_advance_end" in CONDITIONAL.summary(scene)
    assert "Rank 1 came by on_advance_end, the others by advance" in str(
        CONDITIONAL.fixes_for(scene)
    )


def test_ranks_that_resumed_at_other_steps_are_no_ranks_of_one_run() -> None:
    steps = Block("for", 50, "for step in range(start + 1, last):")
    stacks = {0: in_call(66), 1: in_step(), 2: in_call(66)}
    values = {0: {"step": "240", "start": "180"}, 2: {"step": "240", "start": "180"}}
    values[1] = {"step": "181", "start": "120"}
    outermost = scene_of(stacks, values, site(57, steps), site(66, steps))
    below = scene_of(stacks, values, site(57, EPOCH, steps), site(66, EPOCH, steps))

    assert points(RESUMED, outermost, "suspects-stack") == [26]
    assert RESUMED.ranks(outermost) == (1,)
    assert "`start` is 120 on rank 1" in RESUMED.summary(outermost)
    assert begun_apart(below) is None, "each epoch may begin at another number"


def test_a_loop_that_the_rank_begins_by_its_number_is_not_resumed() -> None:
    """The stages of a pipeline warm up with other numbers of micro-batches."""
    stages = Block("for", 53, "for i in range(warmup, n):", made="min(world - rank - 1, n)")
    stacks = {0: in_step(), 1: in_call(57)}
    values = {0: {"warmup": "1"}, 1: {"warmup": "0"}}

    assert begun_apart(scene_of(stacks, values, site(57, stages))) is None
    told = Block("for", 53, "for i in range(warmup, n):", made="load(path)")
    assert begun_apart(scene_of(stacks, values, site(57, told))) is not None


ITEMS = Block("for", 53, "for name in self.products:")


def test_ranks_in_different_calls_of_one_loop_go_through_it_in_another_order() -> None:
    stacks = {0: in_call(57, "all_reduce"), 1: in_call(58, "all_gather")}
    values = {0: {"epoch": "1", "name": "'mae'"}, 1: {"epoch": "1", "name": "'hist'"}}
    scene = scene_of(stacks, values, site(57, EPOCH, ITEMS), site(58, EPOCH, ITEMS))

    assert points(ORDER, scene, "suspects-stack") == [13]
    assert points(CONDITIONAL, scene, "suspects-stack") == [-10]
    assert "`name` is 'mae' on rank 0, 'hist' on rank 1" in ORDER.summary(scene)


def test_a_pass_that_can_be_left_out_is_no_other_order() -> None:
    stacks = {0: in_call(57, "all_reduce"), 1: in_call(58, "all_gather")}
    values = {0: {"epoch": "1", "name": "'mae'"}, 1: {"epoch": "1", "name": "'hist'"}}
    skip = Skip(55, "if empty(name):", "continue", 53)
    sites = (
        SourceSite(("E2",), CELL, None, TRAIN, line, "fit", "", (EPOCH, ITEMS), (skip,))
        for line in (57, 58)
    )
    scene = scene_of(stacks, values, *sites)

    assert points(ORDER, scene, "suspects-stack") == []
