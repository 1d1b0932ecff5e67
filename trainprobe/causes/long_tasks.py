"""What logs alone weigh for a rank that works too long, and for a limit that is too short."""

from __future__ import annotations

import re

from trainprobe.causes.collective_calls import SHORT_S, call_lines
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.diverging_calls import camps, places
from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import quote
from trainprobe.facts import LogEvent, LogJob, LogProgress, LogWork, Output, RankException
from trainprobe.facts.collectives import NO_NUMBER
from trainprobe.facts.timed_out_calls import FIRST
from trainprobe.stacks.classify import ONE_GOES_FIRST
from trainprobe.stacks.traceback_text import NAME_CUT_OFF
from trainprobe.waits.bounds import NCCL_S, OTHERS_S
from trainprobe.waits.divergence import call_says, camps_say

VERY_FIRST = 3
# a barrier with such a number stands at the start: data, weights and caches are prepared there
FIRST_COLLECTIVES = 5
_ALL_MEET = re.compile(r"\b(?:wait_for_everyone|barrier|synchronize)\b")
_KEEPS = re.compile(
    r"save|checkpoint|evaluat|valid|gather_for_metrics|prepare|tokeni[sz]e|preprocess",
    re.IGNORECASE,
)
_LONG_TASK = re.compile(
    r"(?i)\b(?:sav(?:e|ing)|writ(?:e|ing)|dump(?:ing)?|export(?:ing)?|upload(?:ing)?"
    r"|download(?:ing)?|tokeni[sz]\w*|pre-?process\w*|validat(?:e|ing|ion)|evaluat(?:e|ing|ion)"
    r"|generat(?:e|ing)|index(?:ing)?|scan(?:ning)?|convert(?:ing)?|merg(?:e|ing)|consolidat\w*"
    r"|prepar(?:e|ing)|shard(?:ing)?|pack(?:ing)?|cach(?:e|ing)|plot(?:ting)?|render(?:ing)?)\b"
)
_A_STEP = re.compile(
    r"(?i)\b(?:step|iter(?:ation)?)\b.{0,40}\bloss\b|Watchdog|ProcessGroup|Error|Traceback"
)
OF_ALL = ("", "0", "default_pg")  # the group of all ranks, as lines name it, or do not
LAST_LINES = 3
EXACTLY_S = 5.0
NO_LIMIT_S = 2.0  # a first collective alone may take longer
NEAR = 20  # lines
TIMEOUTS = ("store-timeout", "collective-timeout", "barrier-timeout")
_EVALUATES = re.compile(r"(?i)evaluat|validat|predict")


def of_long_task(scene: Scene, timeouts: Timeouts) -> Weighings:
    """One rank works alone for longer than the others wait."""
    if not timeouts.calls:
        yield from _met_in_vain(scene, timeouts)
        yield from _bar_of_the_limit(scene, timeouts)
        return
    if timeouts.timeout_s and timeouts.timeout_s < NO_LIMIT_S:
        says = f"The others gave up after {timeouts.timeout_s:g} s, in which no task is long"
        yield weighing(-13, "scheduler", says, *call_lines(timeouts))
    if timeouts.together:
        says = f"All {timeouts.world} ranks gave up in one and the same call: nobody was away"
        yield weighing(-13, "other-stacks", says, *call_lines(timeouts))
    if scene.parted is not None:
        says = f"The ranks were in different calls: {camps_say(scene.parted)}"
        yield weighing(-13, "flight-recorder", says, ids=scene.parted.evidence)
    elif timeouts.behind:
        yield weighing(-13, "flight-recorder", timeouts.behind, *call_lines(timeouts))
    yield from _at_a_task(scene, timeouts)
    yield from _at_work(scene, timeouts)
    yield from _bar_of_the_limit(scene, timeouts)
    yield from _met_at(scene, timeouts)
    words = _last_lines(scene, timeouts) if timeouts.task is None and scene.parted is None else None
    if words is not None:
        rank, line, output = words
        says = f"The last that rank {rank} said is «{short(line, 100)}»"
        yield weighing(10 if len(timeouts.gave_up) > 1 else 6, "suspects-log", says, output)
    worked = _works_on(scene, timeouts)
    if worked is not None:
        says = (
            f"Rank {worked.rank} still went on after the others had given up:"
            f" {short(worked.line, 80)}"
        )
        yield weighing(10, "probe-outcome", says, worked)
        if isinstance(worked, LogWork) and not worked.ended:
            says = f"It was at {worked.step} of {worked.of} then"
            yield weighing(10, "other-stacks", says, worked)
    missing = timeouts.missing
    if (
        missing is not None
        and not missing.by_stack
        and (
            words is not None
            or (missing.ranks == (0,) and (missing.named or _has_spoken(scene, 0)))
        )
        and not timeouts.together
    ):
        yield weighing(6, "flight-recorder", missing.says, *missing.facts)


def _has_spoken(scene: Scene, rank: int) -> bool:
    """Whether the log holds any line of a rank: of one that is left out, silence tells nothing."""
    job = scene.one(LogJob)
    return job is None or rank in job.ranks


def _met_in_vain(scene: Scene, timeouts: Timeouts) -> Weighings:
    """A store's timeout and a Ctrl-C name no call: only the frames tell that it was raised where
    all but one rank wait, and a bar what that one does.
    """
    broken = [
        fact
        for fact in scene.of(RankException)
        if (fact.echo and fact.echo_of in TIMEOUTS) or fact.interrupted or fact.type == NAME_CUT_OFF
    ]
    found = first_found(
        (match.group(0), fact)
        for fact in broken
        for frame in fact.frames
        if (match := re.search(rf"\w*{ONE_GOES_FIRST.pattern}", f"{frame.name} {frame.text}"))
    )
    if found is None:
        return
    says = f"The others waited inside {found[0]}, in which one rank goes first"
    yield weighing(13, "other-stacks", says, found[1])
    tasks = timeouts.events("task-began")
    if tasks and not any(
        (end.place or 0) > (tasks[-1].place or 0) for end in timeouts.events("task-ended")
    ):
        says = f"Somebody was at «{short(tasks[-1].line, 100)}» when the others gave up"
        yield weighing(13, "suspects-log", says, tasks[-1])


def _at_a_task(scene: Scene, timeouts: Timeouts) -> Weighings:
    """What somebody had begun when the others gave up, and whether it began one limit before."""
    task = timeouts.task
    if task is not None and scene.parted is None:
        went_on = _went_on(scene, task)
        who = ranks_say([task.rank]) if task.rank is not None else "Somebody"
        load = task.event == "load-began"
        under_way = task.captured.get("percent", "100") != "100"
        short_of = went_on or (load and not under_way) or timeouts.saved_together
        points = 3 if short_of else 10 if load else 13
        says = f"{who} was at «{short(task.line, 100)}» when the others gave up"
        yield weighing(points, "suspects-log", says, task)
        yield from _one_limit_before(timeouts, task, task.at)


def _one_limit_before(timeouts: Timeouts, task: LogEvent | LogWork, at: float | None) -> Weighings:
    """Whether work began, by its clock, when the others came to the call that they gave up."""
    gave_up, limit = next((call for call in timeouts.calls if call.at), None), timeouts.timeout_s
    if gave_up is None or at is None or not limit:
        return
    before = gave_up.at - at
    if abs(before - limit) <= max(60.0, 0.1 * limit):
        says = f"It began {before:.0f} s before, and the limit is {limit:.0f} s"
        known = task.event == "task-began" if isinstance(task, LogEvent) else bool(task.of)
        # whatever is said last before a wait is said about one limit before
        points = 13 if known else 10 if abs(before - limit) <= EXACTLY_S else 3
        yield weighing(points, "scheduler", says, task, gave_up)


ALONE = ("eval", "save", "data")  # work that one rank often does for all
LONG_PART = 0.25  # of the limit; a bar with longer parts tells too little
BEGUN = 5  # percent; a bar that stands near its beginning may be that of the hung steps themselves


def _at_work(scene: Scene, timeouts: Timeouts) -> Weighings:
    """Work of one rank that was announced, or whose bar is not full, when the others gave up, where
    no known wording tells of it; a step of the training that followed ends it.
    """
    begins = min((call.place or 0 for call in timeouts.calls), default=None)
    if begins is None or timeouts.task is not None or scene.parted is not None:
        return
    before = [
        work
        for work in scene.of(LogWork)
        if work.place < begins and work.rank not in timeouts.first and work.kind in ALONE
    ]
    last = max(before, key=lambda work: work.place, default=None)
    stepped = max(
        (place for fact in scene.of(LogProgress) for place, _ in fact.marks if place < begins),
        default=-1,
    )
    if last is not None and not last.ended and last.place >= stepped:
        who = ranks_say([last.rank]) if last.rank is not None else "Somebody"
        says = f"{who} was at «{short(last.line, 100)}» when the others gave up"
        # a line that announces work is often done when the next begins
        yield weighing(10 if last.of else 6, "suspects-log", says, last)
        yield from _one_limit_before(timeouts, last, last.begun_at)


def _bar_of_the_limit(scene: Scene, timeouts: Timeouts) -> Weighings:
    """A bar that is not full and has run for just as long as the others wait: that work began when
    they came to their call.
    """
    gave_up = [call.place or 0 for call in timeouts.calls]
    waited = timeouts.events(
        "store-timeout", "unique-id-timeout", "barrier-timeout", "collective-frame"
    )
    gave_up += [event.place or 0 for event in waited]
    # an exception of which the log shows only the beginning may be just that
    gave_up += [
        fact.place
        for fact in scene.of(RankException)
        if fact.type == NAME_CUT_OFF and fact.place is not None
    ]
    if not gave_up:
        return
    limits = (timeouts.timeout_s,) if timeouts.timeout_s else (NCCL_S, OTHERS_S)
    for work in scene.of(LogWork):
        ran_s, of = work.ran_s, work.of or 0
        if ran_s is None or work.ended or work.rank in timeouts.first or not of:
            continue
        own = work.kind in ALONE
        if not own and 100 * (work.step or 0) < BEGUN * of:
            continue
        # a bar is drawn when a part is done, and the next part may have been long under way
        part_s = ran_s / work.step if work.step else 0.0
        limit = next(
            (
                one
                for one in limits
                if -max(20.0, 0.05 * one)
                <= one - ran_s
                <= max(20.0, 0.05 * one, min(part_s, LONG_PART * one))
            ),
            None,
        )
        # it may be drawn once more while the others give up
        if limit is None or (work.first_place > min(gave_up) and work.place - min(gave_up) > NEAR):
            continue
        which = "the limit is" if timeouts.timeout_s else "torch's own limit is"
        says = f"A bar had run for {ran_s:.0f} s at the end, and {which} {limit:.0f} s"
        yield weighing(13, "scheduler", f"{says}: {short(work.line, 80)}", work)
        if work.needs_s and work.needs_s > 1.2 * limit:
            says = f"By its own rate that work takes {work.needs_s:.0f} s, more than the limit"
            yield weighing(6, "probe-outcome", says, work)
        return


def _met_at(scene: Scene, timeouts: Timeouts) -> Weighings:
    """Where the others waited: a barrier, the start, or a function that lets one rank go first."""
    frames = [
        (event.captured.get("function", ""), event) for event in timeouts.events("recorder-frame")
    ]
    frames += [
        (frame.name, fact)  # type: ignore[misc]
        for fact in scene.of(RankException)
        if fact.echo
        for frame in fact.frames
    ]
    first = next(((name, fact) for name, fact in frames if ONE_GOES_FIRST.search(name)), None)
    kept = next(((name, fact) for name, fact in frames if _KEEPS.search(name)), None)
    meet = next(((name, fact) for name, fact in frames if _ALL_MEET.search(name)), None)
    if any(call.op == FIRST for call in timeouts.calls):
        says = (
            "The others waited for"
            f" {ranks_say(timeouts.missing.ranks if timeouts.missing else (0,), capital=False)}"
            f" in {FIRST}"
        )
        yield weighing(10, "other-stacks", says, *call_lines(timeouts))
    barriers = [
        call
        for call in timeouts.calls
        if call.op == "barrier" or (call.numel_in == 1 and call.op in ("all_reduce", "broadcast"))
    ]
    # the first calls of a group of some ranks may come at any time
    early = [
        call
        for call in barriers
        if NO_NUMBER < call.number <= FIRST_COLLECTIVES and call.group in OF_ALL
    ]
    if first is not None:
        says = f"The others waited inside {first[0]}, in which one rank goes first"
        yield weighing(13, "other-stacks", says, first[1])
    elif early and not timeouts.together:
        # rank 0 prepares, and here it did not give up
        # in the first call of all NCCL tries its ways between GPUs
        tried = early[0].number == 1
        often = early[0].number <= VERY_FIRST and not tried
        points = 6 if 0 in timeouts.gave_up else 13 if often else 10
        says = f"The others waited at the start in {call_says(early[0])}, as in a barrier"
        yield weighing(points, "other-stacks", says, early[0])
    elif kept is not None and (meet is not None or barriers):
        yield weighing(6, "other-stacks", f"The others waited inside {kept[0]}", kept[1])
    elif barriers and not timeouts.together and list(timeouts.first) != [0]:
        says = f"The others waited in {call_says(barriers[0])}, as in a barrier"
        yield weighing(6, "other-stacks", says, barriers[0])
    elif timeouts.calls[0].op == "broadcast" and timeouts.first and 0 not in timeouts.first:
        says = "The others waited in a broadcast for the rank that sends, mostly rank 0"
        yield weighing(3, "other-stacks", says, timeouts.calls[0])


def of_short_timeout(scene: Scene, timeouts: Timeouts) -> Weighings:
    """A right step that takes longer than the limit."""
    limit = timeouts.timeout_s
    if limit is None or limit > SHORT_S:
        return
    # Any hang runs out a short limit as well: it takes a sign that somebody was still at work to
    # make it more than a possibility. Any step runs out one that is shorter than steps are.
    says = f"The limit that ran out is only {limit:g} s"
    yield weighing(13 if limit < NO_LIMIT_S else 3, "scheduler", says, *call_lines(timeouts))
    last = max((call.place or 0 for call in timeouts.calls), default=-1)
    after: list[LogEvent | LogProgress | LogWork] = [
        event
        for event in timeouts.events("task-ended", "training-ended")
        if (event.place or 0) > last
    ]
    after += [worked] if (worked := _works_on(scene, timeouts)) is not None else []
    if after:
        over = isinstance(after[0], LogEvent) and after[0].event in ("task-ended", "training-ended")
        what = "came to its end" if over else "went on"
        yield quote(13, f"The work {what} after the others had given up", after[0])
    elif timeouts.task is not None and not _went_on(scene, timeouts.task):
        says = f"A rank was still at work: {short(timeouts.task.line, 100)}"
        yield weighing(10, "suspects-log", says, timeouts.task)
    if scene.parted is not None or len(camps(places(scene))) > 1:
        says = (
            "The ranks were in different calls, which no limit"
            f" cures{f': {camps_say(scene.parted)}' if scene.parted else ''}"
        )
        yield weighing(-13, "flight-recorder", says, *call_lines(timeouts))


def _last_lines(scene: Scene, timeouts: Timeouts) -> tuple[int, str, Output] | None:
    """(rank, line, output) of an absent rank that last spoke of a long task."""
    missing = timeouts.missing.ranks[:4] if timeouts.missing is not None else ()
    for rank in missing:
        own = scene.of(Output, rank=rank)
        for output in own or (scene.of(Output, rank=None) if missing == (0,) else ()):
            lines = [line for line in output.tail[-4000:].splitlines() if line.strip()][
                -LAST_LINES:
            ]
            line = first_found(
                line
                for line in reversed(lines)
                if _LONG_TASK.search(line) and not _A_STEP.search(line)
            )
            if line is not None:
                return rank, line, output
    return None


def _works_on(scene: Scene, timeouts: Timeouts) -> LogEvent | LogProgress | LogWork | None:
    """What a rank that did not give up printed of its work after the others had."""
    begins = min((call.place or 0 for call in timeouts.calls), default=None)
    if begins is None or not timeouts.first:
        return None
    told_of: list[LogEvent | LogProgress | LogWork] = list(
        timeouts.events("task-began", "load-began", "task-ended")
    )
    told_of += scene.of(LogProgress)
    told_of += [work for work in scene.of(LogWork) if work.is_count]
    return first_found(
        one
        for one in told_of
        if one.rank is not None and one.rank not in timeouts.first and (one.place or 0) > begins
    )


def _went_on(scene: Scene, task: LogEvent) -> bool:
    """Did training steps follow the task?"""
    bars = [
        fact for fact in scene.of(LogProgress) if fact.rank == task.rank and fact.place is not None
    ]
    # an evaluation has a bar of its own, in which no loss of training is told
    own = _EVALUATES.search(task.line) is not None
    after = [
        fact
        for fact in bars
        if (fact.place or 0) > (task.place or 0)
        and "%|" not in task.line
        and fact.line[:20] != task.line[:20]
    ]
    return any(not own or fact.finished or "loss" in fact.line for fact in after)
