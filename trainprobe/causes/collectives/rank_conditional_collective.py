"""Some ranks call a collective that the others do not.

Collectives pair in order, on all ranks of a group. A call under `if rank == 0:`, an early `return`,
or an evaluation on one rank makes that rank enter an operation which nobody else is in. With NCCL,
and often with gloo, everybody then waits for ever. Gloo can also pair the call with the others'
next one; the sizes differ, and the rank that receives too much aborts ("Received data size doesn't
match expected size"), which need not be the rank that is wrong.

It is recognised by the journal of collective calls (the earliest position at which the operations
differ), by ranks that stand or broke at different call sites, and by an enclosing `if` on the rank
in the source. It is ruled out when all ranks made the same call with other sizes
(`collective-shape-mismatch`) or made both calls in another order (`collective-order-mismatch`). The
ranks blamed are the minority camp, or those for which the `if` holds; of two equal camps both.

In a live job the ranks' own values tell more: a flag that differs between them, a loop of which one
is a pass behind, or one call in which ranks stand in different passes.

A process group counts as well: all ranks must call `new_group`, and those that have called it
unequally often stand in it with different numbers.

Of a log it is recognised by one sequence number with other operations in the ranks' watchdog lines,
and by finger prints that differ in operation or number.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import away, of_conditional
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.crossed_groups import GonePast, along_a_mesh, crossed_groups, gone_past
from trainprobe.causes.diverging_calls import (
    BEHIND,
    DDP_FORWARD,
    DISAGREE,
    OF_EACH_STEP,
    Place,
    all_asleep,
    called,
    called_alone,
    camps,
    disagreement,
    exchange,
    fixes_of_counts,
    line_of,
    of_stopped,
    own_blocks,
    places,
    rank_block,
    singled_out,
    stands_at,
    under,
)
from trainprobe.causes.early_loop_exits import (
    COUNTS,
    asks_for_others,
    left_a_loop,
    left_by,
    may_be_missed,
    places_of_rest,
    returned_before,
    steps_ahead,
    went_past,
)
from trainprobe.causes.exception_handlers import caught_before
from trainprobe.causes.group_numbers import number_facts, numbers_say, odd_ranks
from trainprobe.causes.linted import LIKELY
from trainprobe.causes.parting_values import (
    behind,
    odd_by_value,
    parted_block,
    passes_apart,
    says_of,
    weigh_values,
)
from trainprobe.causes.phrases import Fixes, file_line, fixes, ranks_say, short, subject, verb
from trainprobe.causes.rank_differences import weigh_other_copies
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import statement
from trainprobe.causes.strange_contents import weigh_strange_contents
from trainprobe.facts import Block, LintFinding, Skip
from trainprobe.model.ranks import and_list
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.waits.divergence import camps_say

OTHER_KINDS = {
    "shape": "the sizes differ",
    "dtype": "the types differ",
    "order": "the order of the same calls differs",
}


def _weigh(scene: Scene) -> Weighings:
    timeouts = Timeouts(scene)
    parted = scene.group.divergence
    yield from of_conditional(scene, timeouts)
    yield from weigh_strange_contents(scene, 26)
    if parted is not None and parted.kind in ("operation", "call-site"):
        calls = camps_say(parted)
        # Two call sites of one operation may be meant to meet, and calls of which the next are
        # unknown may be another order of the same.
        points = 26 if parted.kind == "operation" and parted.followed else 13
        text = f"The ranks part at their collective {parted.position}: {calls}"
        yield weighing(points, "flight-recorder", text, ids=parted.evidence)
        if not parted.followed and len(parted.camps[0]) < len(parted.camps[-1]):
            alone = (
                f"{ranks_say(parted.camps[0])} alone {verb(parted.camps[0], 'was', 'were')} in"
                " another call"
            )
            yield weighing(6, "other-stacks", alone, ids=parted.evidence)
    elif parted is not None and parted.kind in OTHER_KINDS:
        text = f"All ranks made the same calls; only {OTHER_KINDS[parted.kind]}"
        yield weighing(-26, "flight-recorder", text, ids=parted.evidence)
    if parted is not None and parted.kind == "left-out":
        says = (
            f"{ranks_say(parted.camps[0])} left {parted.calls[1]} out: all other groups of that"
            " dimension of the mesh have made it"
        )
        yield weighing(26, "flight-recorder", says, ids=parted.evidence)
    yield from of_stopped(scene)
    if numbers := number_facts(scene):
        says = f"{numbers_say(scene)}: they have not called new_group equally often"
        yield weighing(26, "suspects-stack", says, *numbers)
        return
    out, condition = went_past(scene)
    if condition is not None:
        yield from _passed(scene, out, condition)
        return
    sides = camps(found := places(scene))
    shown = [place.fact for place in found.values()]
    if (
        len(found) < 2
        or (scene.ranks and not set(scene.ranks) & set(found))
        or (parted is None and exchange(scene))
    ):
        return
    if len(sides) > 1:
        says = "; ".join(f"{ranks_say(side)}: {found[side[0]]}" for side in sides[:3])
        same_op = len({place.op for place in found.values()}) == 1
        text = f"The ranks are in different collectives ({says})"
        yield weighing(10 if same_op else 13, "other-stacks", text, *shown)
        yield from all_asleep(scene, found)
        yield from weigh_other_copies(scene)
    elif len(found) == len(scene.world):
        text = f"All ranks are in the same call, {next(iter(found.values()))}"
        if _made_one_more(scene) is not None:
            text += ", and none gets out, as when one of them has made a call more"
            yield weighing(6, "other-stacks", text, *shown)
        elif passes_apart(scene) is None:
            yield weighing(-13, "other-stacks", text, *shown)
    yield from weigh_values(scene)
    disagree = statement(scene, DISAGREE, scene.world)
    # shared with the two mismatch causes, so it decides little between them
    if disagree is not None:
        text = f"The backend says that the ranks do not agree: {disagreement(disagree)}"
        yield weighing(6, "suspects-log", text, disagree.fact)
    yield from _source(scene)


def _passed(scene: Scene, out: Sequence[int], condition: Block) -> Weighings:
    """The others need not be in a call to be seen to have left this one out."""
    found, rest = places(scene), [rank for rank in scene.world if rank not in out]
    threads = [thread for rank in rest if (thread := scene.thread(rank)) is not None]
    says = (
        f"{ranks_say(rest)} {verb(rest, 'stands', 'stand')} further down,"
        f" at {threads[0].where}, past the call in which {ranks_say(out, capital=False)}"
        f" {verb(out, 'waits', 'wait')}"
    )
    yield weighing(13, "other-stacks", says, *threads)
    where = under(condition, line_of(scene, found[out[0]], condition))
    says = f"The call of {ranks_say(out, capital=False)} stands {where}"
    yield weighing(10, "source", says, *scene.sites(found[out[0]].frames))


def _made_one_more(scene: Scene) -> LintFinding | None:
    """All ranks are in one call, and lint is rather sure of a call that only some ranks make: who
    made it stands in that one call a number further than the others.
    """
    found = places(scene)
    if len(camps(found)) != 1 or len(found) < len(scene.world):
        return None
    return first_found(
        one
        for one in scene.of(LintFinding)
        if one.rule == "rank-conditional-collective" and one.confidence >= LIKELY
    )


def _source(scene: Scene) -> Weighings:
    found = places(scene)
    if (caught := caught_before(scene)) is not None:
        yield weighing(13, "suspects-log", caught.says, caught.raised)
    for side in camps(found):
        block = rank_block(scene, found, side)
        if block is not None and len(side) < len(scene.world):
            where = under(block, line_of(scene, found[side[0]], block))
            says = f"The call of {ranks_say(side, capital=False)} stands {where}"
            yield weighing(10, "source", says, *scene.sites(found[side[0]].frames))
            return
    for side in camps(found):
        if (block := parted_block(scene, found, side)) is not None:
            apart = says_of(scene, block)
            says = f"The call of {ranks_say(side, capital=False)} stands under it: {apart}"
            yield weighing(13, "source", says, *apart.facts)
            return
    for side in camps(found):
        if (alone := called_alone(scene, found, side)) is not None:
            who = ranks_say(side, capital=False)
            says = (
                f"To the call in which {who} {verb(side, 'waits', 'wait')} leads another way, by"
                f" {alone.where}, that only some ranks take"
            )
            if stands_at(found[side[0]], alone):
                says = (
                    f"{ranks_say(side)} came to that call by {alone.where}, as only some ranks do"
                )
            yield weighing(10, "source", says, alone)
            return
    if (late := behind(scene)) is not None:
        yield weighing(6, "suspects-stack", str(late), *late.apart.facts)
    out, skip = steps_ahead(scene)
    if skip is not None:
        says = (
            f"A step can be skipped: `{short(skip.text, 80)}` (line {skip.line}), in the loop that"
            f" {ranks_say(out, capital=False)} left first"
        )
        frames = [frame for place in places_of_rest(scene, out) for frame in place.frames]
        yield weighing(10, "source", says, *scene.sites(frames))
        return
    out, loop = left_a_loop(scene)
    if loop is not None:
        says = (
            f"{ranks_say(out)} {verb(out, 'has', 'have')} left `{short(loop.text, 80)}` (line"
            f" {loop.line}), in which the others still are"
        )
        if (exit_ := left_by(scene, out, loop)) is not None:
            says += f"; it ends early where `{short(exit_.text, 60)}` holds (line {exit_.line})"
        yield weighing(10 if exit_ else 6, "source", says, *scene.sites(found[out[0]].frames))
        return
    yield from _less_sure(scene, found)


def _less_sure(scene: Scene, found: dict[int, Place]) -> Weighings:
    """What in the source may part the ranks, and need not."""
    if (early := _early_return(scene)) is not None:
        frame, skip = early
        says = (
            f"A call may leave it out: `{short(skip.text, 80)}` returns before it, at"
            f" {file_line(frame.file, skip.line)}"
        )
        yield weighing(3, "source", says, *scene.sites([frame]))
    if (own := along_a_mesh(scene, found)) is not None:
        says = (
            f"The call is on `{own[0]}`, along one dimension of a mesh: which of its ranks left it"
            " out only --deep can tell"
        )
        yield weighing(-3, "source", says, own[1])
    if (crossed := crossed_groups(scene, found)) is not None:
        says = f"Both camps call the same operation, on the groups {' and '.join(crossed[0])}"
        yield weighing(-3, "source", says, *crossed[1])
    if (past := gone_past(scene, found)) is not None:
        yield weighing(10, "source", str(past), *past.sites)
    for side in camps(found)[:1] if crossed is None else ():
        if (missed := may_be_missed(scene, side)) is not None and len(side) < len(scene.world):
            says = (
                f"The call of {ranks_say(side, capital=False)} stands {under(missed)}, the others'"
                " does not, and that need not hold on all ranks"
            )
            yield weighing(6, "source", says, *scene.sites(found[side[0]].frames))
            continue
        blocks = [one for one in own_blocks(scene, found, side) if not asks_for_others(one)]
        # a condition that is not about the rank may still differ between ranks
        if blocks and len(side) < len(scene.world):
            says = (
                f"The call of {ranks_say(side, capital=False)} stands under `{blocks[-1].text}`,"
                " the others' does not"
            )
            yield weighing(3, "source", says, *scene.sites(found[side[0]].frames))


def _past(scene: Scene) -> GonePast | None:
    """Who has gone past whom by the source, where no recorder says more."""
    return gone_past(scene, places(scene)) if scene.group.divergence is None else None


def _ranks(scene: Scene) -> tuple[int, ...]:
    if odd := odd_ranks(scene) or went_past(scene)[0]:
        return odd
    parted = scene.group.divergence
    if (
        parted is not None
        and parted.kind in ("operation", "call-site", "missing")
        and len(parted.camps) > 1
        and len(parted.camps[0]) < len(parted.camps[1])
    ):
        return parted.camps[0]
    if parted is not None and parted.kind == "left-out":
        return parted.camps[0]
    found = places(scene)
    if skipped := steps_ahead(scene)[0]:
        return skipped
    if parted is None and along_a_mesh(scene, found) is not None:
        return tuple(sorted(found))  # which of its members left it out nobody can tell from outside
    if left := left_a_loop(scene)[0]:
        return left
    if (past := _past(scene)) is not None:
        return past.later
    if len(camps(found)) < 2:
        return away(Timeouts(scene)) or odd_by_value(scene) or scene.ranks
    return _odd_camp(scene, found)


def _odd_camp(scene: Scene, found: dict[int, Place]) -> tuple[int, ...]:
    """Of ranks in several calls those that must act differently."""
    sides = camps(found)
    late = behind(scene)
    if late is not None and not late.inside:
        return late.ranks
    under_it = [side for side in sides if parted_block(scene, found, side) is not None]
    if len(under_it) == 1 and 2 * len(under_it[0]) <= len(found):
        return under_it[0]
    if len(sides) == 2 and len(sides[0]) == len(sides[1]):
        known = any(rank_block(scene, found, side) is not None for side in sides)
        outside = [side for side in sides if found[side[0]].op != "backward"]
        if late is not None and not known:
            return late.ranks
        # all ranks come to backward in each step, so the other call is the one that some leave out
        if len(outside) == 1 and not known:
            return outside[0]
    return singled_out(scene, found)


def _summary(scene: Scene) -> str:
    who, found = _ranks(scene), places(scene)
    if odd_ranks(scene):
        return (
            f"{numbers_say(scene)}, so they wait for each other: a new_group before was not called"
            " by all ranks"
        )
    if scene.group.divergence is not None and scene.group.divergence.kind == "left-out":
        return (
            f"{subject(scene, who)} left {scene.group.divergence.calls[1]} out, where"
            f" {ranks_say(scene.group.divergence.camps[1], capital=False)} waits"
        )
    if len(sides := camps({rank: found[rank] for rank in who if rank in found})) > 1:
        said_of = ", ".join(
            f"{ranks_say(side, capital=not number)} called {found[side[0]]}"
            for number, side in enumerate(sides[:4])
        )
        return f"{said_of}: not all ranks come to these calls"
    if (more := _made_one_more(scene)) is not None:
        return (
            f"All ranks are in {next(iter(found.values()))} and none gets out: one of them may have"
            f" made a call more, at {more.where}"
        )
    if (apart := passes_apart(scene)) is not None and len(camps(found)) == 1:
        return (
            f"All ranks are in {next(iter(found.values()))}, but not in the same pass: {apart}."
            f" {subject(scene, who)} made a call more or less than the others before"
        )
    if (parted := scene.parted) is not None and not found:
        return (
            f"At collective {parted.position} the ranks were in different calls:"
            f" {camps_say(parted)}"
        )
    if (past := _past(scene)) is not None:
        return str(past)
    mine = next((called(scene, found[rank]) for rank in who if rank in found), "a collective")
    others = {str(place) for rank, place in found.items() if rank not in who}
    block = _condition(scene, found, who) if who else None
    skip = steps_ahead(scene)[1]
    ahead = ""
    if skip is not None:
        ahead = f" a step ahead: a step is skipped where `{short(skip.text, 60)}` holds"
    condition = ahead
    if block is not None:
        condition = f" {under(block, _line(scene, who, block))}"
    rest = ", which the others do not call"
    if others:
        rest = f", while the others are in {' and '.join(sorted(others)[:2])}"
    if (late := behind(scene)) is not None and set(late.ranks) == set(who):
        rest = f"{rest} in a later pass: {late.apart}"
    if (caught := caught_before(scene)) is not None:
        rest = f"{rest}. Before that, {caught.says}"
    return f"{subject(scene, who)} called {mine}{condition}{rest}"


def _condition(scene: Scene, found: dict[int, Place], who: Sequence[int]) -> Block | None:
    """The condition over their call alone that is about the rank, or answered otherwise."""
    return rank_block(scene, found, who) or parted_block(scene, found, who)


def _line(scene: Scene, who: Sequence[int], block: Block) -> str:
    found = places(scene)
    places_of_who = (line_of(scene, found[rank], block) for rank in who if rank in found)
    return next(places_of_who, f"line {block.line}")


def _early_return(scene: Scene) -> tuple[Frame, Skip] | None:
    """The branch by which the ranks that are further on may have left out the others' call: the
    few, or all but them.
    """
    found = places(scene)
    few = singled_out(scene, found) if len(camps(found)) == 2 else ()
    if not few or len(few) == len(found):
        return None
    rest = tuple(rank for rank in found if rank not in few)
    return returned_before(scene, few) or returned_before(scene, rest)


RETURNED = """
Come to the call on all ranks or on none
    {place}: `{skip}` returns before the collective at {where}
    make the call there too, with an empty tensor; or let the ranks decide together whether to
        return (all_reduce of a flag)
"""
CAUGHT = """
Mend what was raised
    {what}, at {at}
Let a rank that fails come to the call as well
    make the call at {call} in a `finally`, or let the ranks decide together whether all give up:
        ok = torch.tensor(float(ok)); dist.all_reduce(ok, op=dist.ReduceOp.MIN)
    or let it end the rank: the launcher then ends the job, instead of a hang
"""
SKIPPED = """
Skip a step on all ranks or on none
    `{skip}` (line {line}) leaves out the collectives below it
    let the ranks decide together: bad = torch.tensor(float(bad)); dist.all_reduce(bad,
        op=dist.ReduceOp.MAX); skip on all ranks or on none
Or take part with nothing to say
    in its place: loss = 0.0 * sum(p.sum() for p in model.parameters()); loss.backward()
"""
BROKEN_OFF = """
Leave the loop on all ranks at once
    {who} left `{loop}` (line {line}) first, by `{exit}` (line {exit_line})
    let them decide together before that line: flag = torch.tensor(float(done));
        dist.all_reduce(flag, op=dist.ReduceOp.MAX); leave the loop on all ranks where flag is set
Or show all ranks the same number
    dist.all_reduce the loss or metric that the condition looks at, before it is looked at
"""
LEFT = """
Leave the loop on all ranks at once
    {who} left `{loop}` (line {line}) first
    give all ranks the same number of steps, or let them
        decide together: flag = torch.tensor(float(done)); dist.all_reduce(flag,
        op=dist.ReduceOp.MAX); end the loop on all ranks where flag is set
Or let the others finish without it
    with Join([model]): around the loop (torch.distributed.algorithms.join), for a DDP model
"""
INSIDE = """
Do the same on all ranks below {place}
    {who} came by {inside}, the others by {rest}
    look for what your hooks and callbacks do differently on some ranks: a key that is logged or a
        metric that is computed for some data only, a save or an evaluation under a condition
"""
PASSED = """
Come to the call at {place} equally often on all ranks
    the others have finished that pass without it: {loop}
    look for what differs between ranks on the way to {place}: a condition, an early return, the
        number of items or keys that a loop goes through
Or leave the others out on purpose
    make the call on a group of just those ranks: dist.new_group([...]), built by all ranks
"""
PAST = """
Make the call at {there} equally often on all ranks of `{group}`
    {who} went past it to `{other}` (line {line}); one of these, a rank of `{group}`, made fewer
        calls: dist.get_process_group_ranks(...) tells which ranks the group has
    {skip}
    make the call there too, with zeros, or let the ranks of the group decide together
"""
UNWRAPPED = """
Let that rank call the model without the wrapper
    at {place} call model.module(...) in place of model(...): DistributedDataParallel's own forward
        exchanges buffers with all ranks
"""
MISSED = """
Come to the call at {there} on all ranks
    {who} went on to {place}, which is part of each step, without it
    look above {there} for a condition, an early return or a `continue` that can hold on
        some ranks alone, such as a list that is empty there
    make the call there too, with an empty tensor, or let the ranks decide together
Or leave the others out on purpose
    make the call on a group of just those ranks: dist.new_group([...]), built by all ranks
"""
GROUPS = """
Make each process group on all ranks
    look for a dist.new_group before that one which only some ranks come to: every rank must call
        it, in the same order, whether it is a member or not
    or make all groups once, at the start
Or let the members of a group make it alone
    dist.new_group(ranks, use_local_synchronization=True)
"""
FIXES = """
Let all ranks make the same calls
    move the collective at {place} {condition}
    {rest}
Or leave the others out on purpose
    make the call on a group of just those ranks: dist.new_group([...]), built by all ranks
"""


def _fixes_of_leaving(scene: Scene) -> Fixes:
    """Where some ranks are known to have left a step or a loop before the others; else ()."""
    if (caught := caught_before(scene)) is not None:
        at = next((one for one in reversed(caught.raised.frames) if is_user(one)), caught.at)
        return fixes(CAUGHT, what=caught.what, at=at.where, call=caught.before.where)
    if (skip := steps_ahead(scene)[1]) is not None:
        return fixes(SKIPPED, skip=short(skip.text, 80), line=skip.line)
    out, loop = left_a_loop(scene)
    if loop is not None:
        exit_ = left_by(scene, out, loop)
        left = {"who": ranks_say(out), "loop": short(loop.text, 80), "line": loop.line}
        if exit_ is None:
            return fixes(LEFT, **left)
        return fixes(BROKEN_OFF, **left, exit=short(exit_.text, 60), exit_line=exit_.line)
    past = _past(scene)
    return _fixes_of_past(scene, past) if past is not None else ()


def _fixes(scene: Scene) -> Fixes:
    if odd_ranks(scene):
        return fixes(GROUPS)
    who, found, parted = _ranks(scene), places(scene), scene.group.divergence
    block = _condition(scene, found, who) if who else None
    if block is None and parted is None and (counted := fixes_of_counts(scene)):
        return counted
    lines = (file_line(found[rank].file, found[rank].line) for rank in who if rank in found)
    place = next(lines, "") or "the call above"
    alone = called_alone(scene, found, who) or _made_one_more(scene)
    if alone is not None:
        place = alone.where
    if parted is not None and parted.kind == "left-out":
        place = file_line(*parted.sites[0]) or place
    if block is not None:
        move = "above" if block.branch == BEHIND else "out of"
        condition = f"{move} `{short(block.text, 80)}` ({_line(scene, who, block)})"
        rest = "keep only the printing or saving under the rank's condition"
        wrapped = any(rank in found and found[rank].op == DDP_FORWARD for rank in who)
        unwrap = fixes(UNWRAPPED, place=place) if wrapped else ()
        return unwrap + fixes(FIXES, place=place, condition=condition, rest=rest)
    if out_of_step := _fixes_of_leaving(scene):
        return out_of_step
    if (late := behind(scene)) is not None and late.inside and set(late.ranks) == set(who):
        return fixes(PASSED, place=place, loop=late.apart)
    if (early := _early_return(scene)) is not None:
        frame, skip = early
        return fixes(
            RETURNED,
            place=file_line(frame.file, skip.line),
            skip=short(skip.text, 80),
            where=file_line(frame.file, frame.line),
        )
    mine = next((found[rank] for rank in who if rank in found), None)
    if mine is not None and mine.inside:
        ways = {one.inside for rank, one in found.items() if rank not in who} - {mine.inside}
        others = and_list(sorted(ways)) or "another call of it"
        who_say = ranks_say(who)
        return fixes(INSIDE, place=place, who=who_say, inside=mine.inside, rest=others)
    if mine is not None and (there := _missed(found, who)):
        return fixes(MISSED, there=there, who=ranks_say(who), place=str(mine))
    blocks = [
        block
        for block in (own_blocks(scene, found, who) if len(who) < len(scene.world) else ())
        if not asks_for_others(block)
    ]
    branch = "out of the branch that only some ranks take"
    if blocks:
        where = f"`{short(blocks[-1].text, 80)}` (line {blocks[-1].line})"
        branch = f"out of {where}, or make it hold on all"
    rest = (
        "or a rank skipped a step: look for `continue`, `break`, `return` and `except` around the"
        " calls above, and for a loop of another length"
    )
    return fixes(FIXES, place=place, condition=branch, rest=rest)


def _fixes_of_past(scene: Scene, past: GonePast) -> Fixes:
    one, other = past.sites
    frames = places(scene)[past.waiting[0]].frames
    skips = (skip for site in scene.sites(frames) for skip in site.skips)
    skip = next((skip for skip in skips if not COUNTS.search(skip.text)), None)
    return fixes(
        PAST,
        there=file_line(one.file, one.line),
        group=past.groups[0],
        who=ranks_say(past.later),
        other=short(other.text.strip(), 80),
        line=other.line,
        skip=f"`{short(skip.text, 80)}` (line {skip.line}) may leave one out"
        if skip is not None
        else "look there for a condition, a `continue` or a loop of another length",
    )


def _missed(found: dict[int, Place], who: Sequence[int]) -> str:
    """Where the others are, if these ranks are in what is part of each step and those are not."""
    mine = {place.op for rank, place in found.items() if rank in who}
    rest = [place for rank, place in found.items() if rank not in who]
    if not mine <= OF_EACH_STEP or not rest or any(one.op in OF_EACH_STEP for one in rest):
        return ""
    return file_line(rest[0].file, rest[0].line)


CAUSE = Cause(
    id="rank-conditional-collective",
    title="Only some ranks reach a collective",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle=(
        "compare the ranks' next collective with TORCH_DISTRIBUTED_DEBUG=DETAIL, which names both"
        " calls"
    ),
)
