"""One rank works alone for longer than the others want to wait.

Rank 0 tokenises the data, saves a checkpoint, validates or writes a report while the others are in
their next collective already. The work is right and goes on; when it takes longer than the process
group's timeout, the others give up and the job dies.

It is recognised by a rank outside all collectives that makes progress (its place changes, it
writes, it computes) while all others wait, and by how much of their timeout has passed. A rank that
stands still rules it out, and so does one that compiles.

Of a log it is recognised by a bar or a line of such work (tokenising, saving, validating) on a rank
that did not give up, begun one limit before the others did; by a barrier (one element) among the
first collectives; and by calls inside functions that let one rank go first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import (
    ends,
    others_wait,
    states,
)
from trainprobe.causes.collective_calls import away
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.commands import live_pid
from trainprobe.causes.lone_workers import may_go_round, own_blocks, waited, working
from trainprobe.causes.long_tasks import of_long_task
from trainprobe.causes.phrases import Fixes, fix, fixes, ranks_say, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import (
    LogWork,
    MainThread,
    RankException,
    Samples,
)
from trainprobe.waits.divergence import call_says
from trainprobe.waits.lone_tasks import LoneTask, lone_task
from trainprobe.waits.slowness import IDLE_S

NAMES_A_TASK = re.compile(
    r"(?i)save|checkpoint|tokeni[sz]e|preprocess|prepare|valid|eval|export|download|index|report"
    r"|metric|dump|write"
)


def _weigh(scene: Scene) -> Weighings:
    yield from of_long_task(scene, Timeouts(scene))
    late = came_late(scene)
    if late is not None:
        says = f"{late.says}, so it had been at work elsewhere"
        yield weighing(13, "other-stacks", says, late.gave_up, *late.facts)
    again = _again(scene)
    if again is not None:
        says = (
            f"Rank {again.rank} was alone at {again.place} {again.times} times in"
            f" {again.span_s:.0f} s, and the others waited for it {again.share:.0%} of the time"
        )
        yield weighing(13, "suspects-stack", says, *scene.of(Samples))
        says = "No other rank was met in that function"
        if again.block is not None:
            says = f"That work stands under `{again.block.text}` (line {again.block.line})"
        yield weighing(10, "source", says, *scene.of(Samples))
        return
    at_work = working(scene) if scene.group.mode != "crash" else ()
    if not scene.others or len(scene.ranks) > len(scene.others):
        return
    for thread, doing in at_work[:1]:
        task = tuple(_task(scene, thread))
        if scene.group.mode == "slow" and not task and waited(scene)[0] < IDLE_S:
            return  # a rank that is slow in every step looks the same
        where = f" at {thread.where}" if thread.where else ""
        says = f"Rank {thread.rank} works{where}: pid {thread.pid} {doing} between the looks"
        if may_go_round(scene) is not None:
            yield weighing(6, "suspects-stack", says, thread)
            return
        yield weighing(13, "suspects-stack", says, thread, scene.process_of(thread.pid))
        yield from others_wait(scene, 10)
        if (value := scene.watch.moves_on(thread.pid)) is not None:
            says = (
                f"`{value.name}` in {value.function} moved on in {value.reads} reads of its values"
            )
            yield weighing(6, "probe-outcome", says, value)
        elif (value := scene.watch.in_vain(thread.pid)) is not None:
            says = f"In {value.reads} reads of its values none moved on: it may go round for ever"
            yield weighing(-10, "probe-outcome", says, value)
        slept, limit, limits = waited(scene)
        if limit and slept >= limit / 4:
            says = (
                f"The others have waited {slept:.0f} s of the {limit:.0f} s after which they"
                " give up"
            )
            yield weighing(6, "scheduler", says, *limits)
        yield from task
    if not at_work and states(scene) and any(thread.moved is False for thread in ends(scene)):
        yield weighing(-13, "suspects-stack", "It does nothing between the looks", *ends(scene))


def _again(scene: Scene) -> LoneTask | None:
    """What the suspect does alone time after time, though it may do something else just now."""
    if scene.group.mode != "slow":
        return None
    task = lone_task(scene.facts, scene.cell)
    return task if task is not None and scene.ranks == (task.rank,) else None


def _task(scene: Scene, thread: MainThread) -> Weighings:
    """What shows that the work is one task of one rank: a condition around it, or its name."""
    blocks = own_blocks(scene, thread)
    name = next(
        (frame.name for frame in reversed(thread.frames[-8:]) if NAMES_A_TASK.search(frame.name)),
        "",
    )
    if blocks:
        says = f"That work stands under `{blocks[-1].text}` (line {blocks[-1].line})"
        yield weighing(6, "source", says, *scene.sites(thread.frames))
    elif name:
        yield weighing(3, "source", f"Its stack is inside {name}", thread)


def _summary(scene: Scene) -> str:
    timeouts = Timeouts(scene)
    if timeouts.calls:
        who, task, limit = away(timeouts, task=True), timeouts.task, timeouts.timeout_s
        after = f", which gave up after {limit:.0f} s" if limit else ""
        at = f" at «{short(task.line, 90)}»" if task is not None else ""
        return (
            f"{_one_of(who)} worked alone{at} while the others waited in"
            f" {call_says(timeouts.calls[0])}{after}"
        )
    late = came_late(scene)
    if late is not None:
        return (
            f"{ranks_say(late.ranks)} worked alone for longer than the others wait:"
            f" {late.says[:1].lower()}{late.says[1:]}"
        )
    again = _again(scene)
    if again is not None:
        return (
            f"{subject(scene)} works alone at {again.place} again and again, and the others wait"
            f" for it {again.share:.0%} of the time"
        )
    if not (at_work := working(scene)):  # a log whose timeout names no call
        task = next(iter(timeouts.events("task-began")[-1:]), None)
        at = f" at «{short(task.line, 90)}»" if task is not None else ""
        pressed = scene.origin is not None and scene.origin.interrupted
        end = "somebody pressed Ctrl-C" if pressed else "the others, which let it go first, gave up"
        return f"Rank 0 worked alone{at} until {end}"
    thread, doing = at_work[0]
    slept, limit, _limits = waited(scene)
    left = f"; they give up in about {max(limit - slept, 0):.0f} s" if limit else ""
    return (
        f"{subject(scene)} {verb(scene.ranks, 'works', 'work')} alone at"
        f" {thread.where or thread.leaf} ({doing}) while the others wait{left}"
    )


def _one_of(ranks: Sequence[int]) -> str:
    """`Rank 0`; `One of ranks 0, 1 and 5`, since only one of them is at work."""
    if not ranks:
        return "One rank"
    return f"One of {ranks_say(ranks, capital=False)}" if len(ranks) > 1 else ranks_say(ranks)


def _ranks(scene: Scene) -> tuple[int, ...]:
    timeouts, late = Timeouts(scene), came_late(scene)
    if late is not None:
        return late.ranks
    if not timeouts.calls and scene.group.mode == "crash" and not working(scene):
        return (0,)  # whoever goes first where the others wait for the main process
    return away(timeouts, task=True) or scene.ranks


BEFORE = """
Do it before the training
    a job of its own on one process: tokenise, download or convert once, keep the result on disk,
        and only load it here
"""
SAVING = """
Save on all ranks, or in the background
    torch.distributed.checkpoint.save or async_save, or the framework's sharded checkpoints, in
        place of one rank that gathers and writes everything
"""
EVALUATING = """
Evaluate on all ranks
    with the data split between them, or in a job of its own; or on fewer samples
"""
TIME = """
Or give it the time that it takes
    init_process_group(..., timeout={hours}); ddp_timeout=7200 in TrainingArguments;
        InitProcessGroupKwargs(timeout={hours}) in accelerate
"""
BACKGROUND = """
Let all ranks do it in parts, or one of them in the background
    torch.distributed.checkpoint.async_save in place of a save that the others wait for; each rank
        with its share of the samples, and one all_reduce of the sums
"""
RARER = """
Or do it more rarely
    every tenth epoch, or after so many steps that it takes a small part of the time
"""
SHARE = """
Or share it among the ranks
    save sharded or in the background (async_save), validate on all ranks, with the data split
        between them
"""
_SAVES = re.compile(r"(?i)\bsav(?:e|ing)|checkpoint|state[ _]dict|upload")
_EVALUATES = re.compile(r"(?i)\beval|\bvalid|\btest|(?-i:mAP)|generat|inference|predict")


def _fixes(scene: Scene) -> Fixes:
    timeouts = Timeouts(scene)
    if (again := _again(scene)) is not None:
        evaluates = _EVALUATES.search(again.text) and not _SAVES.search(again.text)
        return fixes((EVALUATING if evaluates else BACKGROUND) + RARER)
    if timeouts.calls or not (at_work := working(scene)):
        hours = f"timedelta(hours={max(2, round((timeouts.timeout_s or 0) / 1200))})"
        bar = max(scene.of(LogWork), key=lambda one: one.place, default=None)
        task = timeouts.task or bar
        done = task.line if task is not None else ""
        first = SAVING if _SAVES.search(done) else EVALUATING if _EVALUATES.search(done) else BEFORE
        return fixes(first + TIME + (SHARE if first is BEFORE else ""), hours=hours)
    slept, limit, _limits = waited(scene)
    wait = f"trainprobe attach {live_pid(scene)}   (again in a minute: does it still move?)"
    return (
        fix(
            "See whether it gets anywhere, and wait for it if it does"
            if scene.watch.in_vain(at_work[0][0].pid)
            else "Wait for it: the work goes on",
            wait,
            f"{max(limit - slept, 0):.0f} s are left before the others give up" if limit else "",
        ),
        *fixes("""
            Give the long part the time that it takes
                init_process_group(..., timeout=timedelta(hours=2)), or a barrier of its own group
                    around it
            Or take it out of the training
                do it before the launch, on all ranks in parts, or in the background (async_save)
        """),
    )


# Ranks that came to a collective after another had given up waiting there: they were busy
# elsewhere, and well.
# What a rank raises that has waited for as long as its process group allows (stacks.echoes).
GAVE_UP = frozenset({"peer-timeout", "collective-timeout"})
LEAST_S = 2.0  # ranks that fail together are less than that apart


@dataclass(frozen=True)
class CameLate:
    """`ranks` came `after_s` seconds after `gave_up` had raised; `facts` say so."""

    ranks: tuple[int, ...]
    after_s: float
    gave_up: RankException
    facts: tuple[RankException, ...]

    @property
    def says(self) -> str:
        waited = f"Rank {self.gave_up.rank} gave up waiting in a collective"
        return (
            f"{waited}; {ranks_say(self.ranks, capital=False)} came to it {self.after_s:.0f} s"
            " later"
        )


def came_late(scene: Scene) -> CameLate | None:
    """Return them; None where some rank failed of its own, and where more than half came late."""
    if scene.exceptions(scene.world):
        return None
    echoes = [
        one
        for one in scene.exceptions(scene.world, echo=True)
        if one.at is not None and one.rank is not None and one.role == "rank"
    ]
    gave_up = min(
        (one for one in echoes if one.echo_of in GAVE_UP),
        key=lambda one: one.at or 0.0,
        default=None,
    )
    if gave_up is None or gave_up.at is None:
        return None
    late = [
        one
        for one in echoes
        if one.echo_of not in GAVE_UP and (one.at or 0.0) - gave_up.at >= LEAST_S
    ]
    ranks = tuple(sorted({one.rank for one in late if one.rank is not None}))
    if not ranks or 2 * len(ranks) > len(scene.world):
        return None
    return CameLate(ranks, min(one.at or 0.0 for one in late) - gave_up.at, gave_up, tuple(late))


CAUSE = Cause(
    id="rank0-long-task",
    title="One rank works alone while the others wait",
    modes=("hang", "slow", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle=(
        "trainprobe attach --watch 10: does that rank move on, and do the others still wait?"
    ),
    refines="rank-stuck",
)
