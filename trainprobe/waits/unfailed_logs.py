"""Logs in which nothing failed: the job finished, fell short of its plan, or it simply stops."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, LogEvent, LogJob, LogProgress, LogWork, RankEnding
from trainprobe.facts.counts_by_rank import RankCount, counts_apart
from trainprobe.facts.failure_wording import STRANGER
from trainprobe.facts.loss_scales import run_down
from trainprobe.logtext.retries import tries_again
from trainprobe.waits.bars_apart import bars_of_other_lengths
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.left_alone import alone_group
from trainprobe.waits.log_phases import phase_group
from trainprobe.waits.log_suspects import ended, ids_of, log_group
from trainprobe.waits.situation import STILL_THERE, Situation
from trainprobe.waits.suspects import Mode, SuspectGroup
from trainprobe.waits.waits_told import still_waiting

NEAR_LINES = 80
NAN = re.compile(
    r"(?i)\b(?:loss|grad_?norm)\w{0,30}['\"]?(?: ?[:=] ?| )nan\b"
    r"|\b(?:loss|grad)[ _]scale ?[:=] {0,4}0(?:\.0{1,20})?(?=\s|,|;|\||$)"
)
TROUBLE = re.compile(
    r"(?i)error|fail|cannot|can't|could not|unable|denied|invalid|refused|timed?"
    r" ?out|abort|unreachable|mismatch|no such|not found|no space|exceeded|Xid|\bWARN\b|limit"
    r"|\bnot (?:compatible|supported)\b|unsupported|incompatible"
)
HARMLESS = frozenset(
    {
        "given",
        STRANGER,
        "loss-scale-told",
        "lines-left-out",
        "rank-announced",
        "address-not-used",
        "nccl-unwound",
        "tensor-size",
    }
)
_NO_NUMBERS = frozenset({"nan-printed", "loss-scale-low"})
_RETRY = re.compile(r"(?i)\bretry\b")
# Log events (signatures/) that say that there was nothing to train on.
EMPTY_EVENTS = frozenset(
    {
        "empty-loader",
        "empty-dataset",
        "no-steps",
        "already-trained",
        "nothing-to-do",
        "nothing-to-train",
    }
)


def unfailed(facts: Facts, job: LogJob) -> Situation:
    """Nothing failed: the job finished, fell short of its plan, or the log simply stops."""
    told = facts.of(LogProgress, cell=job.cell)
    last = max(
        (one for one in told if one.step is not None), key=lambda one: one.place or 0, default=None
    )
    well = [
        one
        for one in facts.of(RankEnding, cell=job.cell)
        if one.phase == "COMPLETED"
        or (one.how == "exited" and one.code == 0 and one.role != "scheduler")
    ]
    said = [one for one in told if one.finished]
    left = _left_well(facts, job)
    of = max((one.of for one in told if one.of is not None), default=None)
    step = max((one.step for one in told if one.step is not None), default=None)
    count = (
        f"step {step} of {of}"
        if of and step is not None
        else f"step {step}"
        if step is not None
        else ""
    )
    empty = [event for event in facts.of(LogEvent, cell=job.cell) if event.event in EMPTY_EVENTS]
    all_made = bool(of and step is not None and step >= of) and not _epochs_left(last)
    if (alone := alone_group(facts, job)) is not None:
        return ended(alone)
    if said or well or left or all_made:
        done_before = any(
            event.event == "already-trained" for event in empty
        )  # the step that is told is the one that was resumed
        nothing = done_before or (
            not step
            and not any(one.worked for one in said)
            and (bool(empty) or step == 0 or any(one.nothing_line for one in told))
        )
        short = nothing or (
            of is not None and step is not None and step < of - max(1, _stride(told))
        )
        ways = (
            [f"{one.seen_at}: {one.finished_line}" for one in said]
            + [one.reason for one in well[:1]]
            + [f"{one.seen_at}: {one.line}" for one in left[-1:]]
        )
        how = f"; {ways[0]}" if ways and ways[0] else ""
        told_so = next((one.nothing_line for one in told if one.nothing_line), "") or (
            empty[0].line if empty else ""
        )
        why = told_so if nothing else ""
        if short and (said or well):
            says = (
                "The job ended as if it were done at"
                f" {count or 'no step at all'}{f': {why}' if why else ''}"
            )
            ids = ids_of((*said, *well, *told))[:8]
            return ended(log_group(job, "failed-first", says, "crash", ids))
        if (lingering := did_not_end(job, said)) is not None:
            return ended(lingering)
        where = f" at {count}" if count and step else ""
        says = f"Nothing failed: the job finished{where}{how}"
        return Situation(job.cell, "healthy", conclusive=True, says=says)
    slow = next(
        (event for event in facts.of(LogEvent, cell=job.cell) if event.event == "straggler-told"),
        None,
    )
    if slow is not None:
        return _slow(job, slow)
    waiting = still_waiting(facts, job)
    says = _stops(job, last, count)
    stopped = phase_group(facts, job, says)
    if waiting is not None:
        return ended(replace(waiting, phase=stopped.phase) if stopped is not None else waiting)
    words = _last_words(facts, job, told, says)
    if stopped is not None and stopped.waits and (words is None or words.mode == "hang"):
        return ended(stopped)
    groups = tuple(one for one in (words, stopped) if one is not None)
    return Situation(
        job.cell,
        "undetermined",
        conclusive=False,
        says=says if groups else _goes_on(job, last, count) or says,
        groups=groups,
        tentative=bool(groups),
        next_look="" if groups or not job.last_seen_at else STILL_THERE,
    )


def _epochs_left(last: LogProgress | None) -> bool:
    """Whether its last line tells of an epoch with others to come: what is full is that one's bar.
    An epoch may be counted from 0.
    """
    if last is None or last.epoch is None or last.of_epochs is None:
        return False
    return last.epoch < last.of_epochs - 1


def did_not_end(job: LogJob, said: Sequence[LogProgress]) -> SuspectGroup | None:
    """The training was over by its own word, and yet somebody had to press Ctrl-C."""
    done = next((one for one in said if one.pressed_at), None)
    if done is None:
        return None
    says = (
        f"It said that it was done ({done.seen_at}: {done.finished_line[:100]}) and did not end"
        f" until somebody pressed Ctrl-C ({done.pressed_at})"
    )
    return log_group(job, "stuck-inside", says, "hang", done.evidence)


def _left_well(facts: Facts, job: LogJob) -> list[LogEvent]:
    """Words that the processes left of their own will, the launcher's or those of NCCL as each rank
    gives its communicator back, where the log ends with them and no process is known to be missing.
    """
    for said, whose in (("process-left", "pid"), ("communicator-ended", "rank")):
        left = [event for event in facts.of(LogEvent, cell=job.cell) if event.event == said]
        own = {event.captured.get(whose) for event in left}
        ends = bool(left) and job.last_place - max(event.place or 0 for event in left) <= 2
        if ends and len(own) >= (job.world_size or 2):
            return left
    return []


def _slow(job: LogJob, told: LogEvent) -> Situation:
    """A detector in the job has told of ranks that are slower than the others, and the log
    simply goes on.
    """
    ranks = tuple(
        sorted(
            {
                int(part)
                for part in told.captured.get("ranks", "").split(",")
                if part.strip().isdecimal()
            }
        )
    )
    says = (
        f"{ranks_say(ranks) if ranks else 'A rank'} {'is' if len(ranks) < 2 else 'are'} slower than"
        f" the others ({told.seen_at})"
    )
    return ended(log_group(job, "slow", says, "slow", told.evidence, ranks))


def _last_words(
    facts: Facts, job: LogJob, told: Sequence[LogProgress], says: str
) -> SuspectGroup | None:
    """Known lines near the end of a log behind which no step was taken: what it said last may be
    why it stops.
    """
    stepped = max((place for one in told for place, _ in one.marks), default=-1)
    events = [
        event
        for event in facts.of(LogEvent, cell=job.cell)
        if event.event not in HARMLESS and not event.echo and (event.place or 0) >= stepped
    ]
    last = max(
        (one for one in told if one.step is not None), key=lambda one: one.place or 0, default=None
    )
    if last is not None and NAN.search(
        last.line
    ):  # the first such line stands before, and it never got better
        events = [
            *events,
            *(
                event
                for event in facts.of(LogEvent, cell=job.cell)
                if event.event in _NO_NUMBERS and event not in events
            ),
        ]
        return _diverged(job, [event for event in events if event.event in _NO_NUMBERS], says)
    if scales := run_down(facts.of(LogEvent, cell=job.cell)):
        return _diverged(job, scales, says)
    apart = bars_of_other_lengths(facts.of(LogWork, cell=job.cell))
    if apart:
        return log_group(job, "stuck-inside", says, "hang", ids_of(apart))
    counts = counts_apart(facts.of(RankCount, cell=job.cell))
    if counts and counts[0].tells and stepped < 0:
        return log_group(job, "stuck-inside", says, "hang", ids_of(counts))
    near = [event for event in events if job.last_place - (event.place or 0) <= NEAR_LINES]
    if not near:
        return None
    lagging = next((event for event in near if event.event == "straggler-told"), None)
    if lagging is not None:
        ranks = tuple(
            sorted(
                {int(text) for text in re.findall(r"\d{1,6}", lagging.captured.get("ranks", ""))}
            )
        )
        says = (
            f"{ranks_say(ranks) if ranks else 'A rank'} {'is' if len(ranks) < 2 else 'are'} slower"
            f" than the others, as {lagging.seen_at} tells"
        )
        return log_group(job, "slow", says, "slow", lagging.evidence, ranks)
    trouble = any(map(tells_of_trouble, near))
    diverged = all(event.event in _NO_NUMBERS for event in near)
    mode: Mode = "check" if diverged else "crash" if trouble else "hang"
    return log_group(
        job, "failed-first" if trouble else "stuck-inside", says, mode, ids_of(near)[:8]
    )


def tells_of_trouble(event: LogEvent) -> bool:
    """Whether it tells of a failure, and not of who tries again and has not failed yet."""
    return (
        event.event not in HARMLESS
        and not event.echo
        and TROUBLE.search(event.line) is not None
        and not (tries_again(event.line) or _RETRY.search(event.line))
    )


def _diverged(job: LogJob, events: Sequence[LogEvent], says: str) -> SuspectGroup | None:
    """The last step told of has no number for its loss."""
    return log_group(job, "stuck-inside", says, "check", ids_of(events)[:8]) if events else None


def _stride(told: Sequence[LogProgress]) -> int:
    """How many steps apart two lines of progress are: the last one may be as far from the end."""
    most = 0
    for one in told:
        steps = sorted({step for _, step in one.marks})
        most = max([most, *(high - low for low, high in itertools.pairwise(steps))])
    return most


def _stops(job: LogJob, last: LogProgress | None, count: str) -> str:
    if not job.last_seen_at:
        return (
            f"The log{'s are' if len(job.files) > 1 else ' is'} empty"
            if job.ends
            else "Nothing could be read of the log"
        )
    where = f" at {job.last_seen_at}"
    if not job.ends:
        return (
            f"What was read of the log stops{where}, before its own end, and nothing in it failed"
        )
    after = f" after {count}" if count and last is not None else ""
    return (
        f"The log stops{where}{after}: it says neither that the job finished nor that anything"
        " failed"
    )


def _goes_on(job: LogJob, last: LogProgress | None, count: str) -> str:
    """That the log ends in the midst of steps; empty where it does not. A job that hangs there
    has printed the same, so it is not called healthy.
    """
    if not job.ends or last is None or len(last.marks) < 2:
        return ""
    if job.last_place - (last.place or 0) > 1:
        return ""
    return (
        f"The log shows steps up to its last line ({job.last_seen_at}, {count}), and nothing in it"
        " failed or waits: as far as it goes the job is well, and whether it went on it cannot tell"
    )
