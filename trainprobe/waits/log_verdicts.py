"""The verdict on a job of which logs are left: attempt by attempt, who failed first, who did not
come, or that nothing failed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainprobe.facts import (
    Facts,
    LogEvent,
    LogFailure,
    LogJob,
    LogProgress,
    LogWork,
    RankEnding,
    Rung,
)
from trainprobe.facts.compared_calls import FOUND_APART
from trainprobe.facts.counts_by_rank import RankCount, counts_apart
from trainprobe.facts.failure_wording import STRANGER
from trainprobe.facts.log_waits import WAIT_TOLD
from trainprobe.facts.process_listings import ChildrenGone
from trainprobe.logtext.quotes import quoted
from trainprobe.logtext.retries import tries_again
from trainprobe.model.diagnosis import Link, RankState, Verdict
from trainprobe.model.facts import Fact
from trainprobe.model.waits import SuspectHow
from trainprobe.waits.absentees import given_up, world_of
from trainprobe.waits.bars_apart import bars_of_other_lengths
from trainprobe.waits.collective_waits import timed_out
from trainprobe.waits.crash import parted_group
from trainprobe.waits.divergence import divergence_in, ranks_say
from trainprobe.waits.import_lock_waits import lock_group
from trainprobe.waits.log_hangs import hang_groups
from trainprobe.waits.log_phases import phase_group
from trainprobe.waits.log_stack_hangs import pressed, still_group
from trainprobe.waits.situation import Situation, failed_before
from trainprobe.waits.standings import Standing
from trainprobe.waits.suspects import Mode, SuspectGroup
from trainprobe.waits.timeline import echoes_in, failures_of

LAST = "job"
PROBE = "job"
NOBODY = "A rank that the log does not name"
MOST_ROWS = 4096


def logged_situation(facts: Facts) -> Situation | None:
    """How the last attempt of a logged job ended, with the suspects of all attempts. None where
    no log was read.
    """
    jobs = sorted(facts.of(LogJob), key=lambda job: (job.cell != LAST, _number(job.cell)))
    attempts = tuple(_attempt(facts, job) for job in jobs)
    if not attempts:
        return None
    groups = _ordered_groups(facts, attempts)
    found = replace(
        attempts[0],
        says=groups[0].says if groups else attempts[0].says,
        groups=groups,
        attempts=attempts,
        echoes=tuple(echo for one in attempts for echo in echoes_in(facts, one)),
    )
    return replace(found, remarks=failed_before(found))


def _number(cell: str) -> int:
    tail = cell.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


def _attempt(facts: Facts, job: LogJob) -> Situation:
    """Judge one attempt by what its logs tell."""
    failures = failures_of(facts, job.cell)
    found = _judged(facts, job, failures)
    return replace(found, ranks=_standings(facts, job, failures), world_size=job.world_size or 0)


def _judged(facts: Facts, job: LogJob, failures: Sequence[LogFailure]) -> Situation:
    origins = [failure for failure in failures if not failure.echo]
    if pressed(failures):
        done = [one for one in facts.of(LogProgress, cell=job.cell) if one.finished]
        still = _did_not_end(job, done) or still_group(facts, job, failures)
        if still is not None:
            return _ended(still)
    if not origins and (by_hand := _interrupted(facts, job)) is not None:
        return _ended(still_group(facts, job, failures) or by_hand)
    if origins:
        divergence = divergence_in(facts, job.cell, world_of(job, failures), hung=True)
        if divergence is not None and FOUND_APART in origins[0].text:
            ranks = _standings(facts, job, failures)
            rung = Rung((), job.cell, None, 0, PROBE, "", len(ranks), "crashed")
            return replace(_ended(parted_group(rung, ranks, divergence)), origin=True)
        group = _first_group(job, failures, origins)
        return replace(_ended(replace(group, divergence=divergence)), origin=True)
    hang = hang_groups(facts, job, failures)
    if hang:
        return replace(_ended(hang[0]), groups=hang)
    if failures:
        return _ended(_echoes_only(job, failures))
    found = _unfailed(facts, job)
    if found.verdict == "undetermined" and (sent := _signalled(facts, job)) is not None:
        return _ended(sent)
    if found.verdict == "undetermined":
        still = (
            still_group(facts, job, failures)
            or lock_group(facts, job)
            or _left_behind(facts, job)
            or _told_wait(facts, job, found)
        )
        return _ended(still) if still is not None else found
    return found


def _interrupted(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """Somebody pressed Ctrl-C, as the launcher says that was sent it, and nothing had failed."""
    sent = [
        event
        for event in facts.of(LogEvent, cell=job.cell)
        if event.event == "launcher-signalled"
        and event.captured.get("signal", "").removeprefix("Signals.") in PRESSED_SIGNALS
    ]
    if not sent or timed_out(facts, job.cell) or given_up(facts, job.cell):
        return None
    told = facts.of(LogProgress, cell=job.cell)
    step = max((one.step for one in told if one.step is not None), default=None)
    after = f" after step {step}" if step is not None else ""
    says = f"Somebody pressed Ctrl-C{after} ({sent[0].seen_at}), and nothing had failed before"
    return replace(_group(job, "stuck-inside", says, "hang", sent[0].evidence), waits=True)


PRESSED_SIGNALS = frozenset({"2", "SIGINT"})


def _signalled(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The launcher says that it was sent a signal and ends its workers, and nothing had failed."""
    sent = [
        event
        for event in facts.of(LogEvent, cell=job.cell)
        if event.event == "launcher-signalled"
        and event.captured.get("signal", "").removeprefix("Signals.") not in PRESSED_SIGNALS
    ]
    if not sent or timed_out(facts, job.cell) or given_up(facts, job.cell):
        return None
    says = (
        f"The launcher was sent {signal_name(sent[0].captured.get('signal', ''))} and ended its"
        f" workers ({sent[0].seen_at}), and nothing had failed before"
    )
    return _group(job, "failed-first", says, "crash", sent[0].evidence)


def signal_name(told: str) -> str:
    """`SIGHUP` of `Signals.SIGHUP`, and of `1`, as Python prints it from 3.11 on."""
    number = int(told) if told.isdecimal() else 0
    return _SIGNALS.get(number, told.removeprefix("Signals.") or "a signal")


_SIGNALS = {1: "SIGHUP", 3: "SIGQUIT", 9: "SIGKILL", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}


def _ended(group: SuspectGroup) -> Situation:
    verdict: Verdict = (
        "hung" if group.mode == "hang" else "slow" if group.mode == "slow" else "crashed"
    )
    return Situation(group.cell, verdict, conclusive=True, says=group.says, groups=(group,))


def _first_group(
    job: LogJob, failures: Sequence[LogFailure], origins: Sequence[LogFailure]
) -> SuspectGroup:
    """The first failure, with the ranks that failed alike of their own."""
    first = origins[0]
    same = [
        failure
        for failure in origins
        if failure.rank is not None
        and (failure is first or (failure.what == first.what and failure.kind == first.kind))
    ]
    ranks = tuple(sorted({failure.rank for failure in same if failure.rank is not None}))
    world = world_of(job, failures)
    everyone = len(ranks) > 1 and len(ranks) == len(world)
    who = (
        "All ranks"
        if everyone
        else (
            ranks_say(ranks)
            if ranks
            else (
                "The kernel"
                if first.what == "kernel"
                else NOBODY
                if len(world) > 1
                else "The program"
            )
        )
    )
    victims = tuple(rank for rank in world if rank not in ranks) if ranks else ()
    others = tuple(
        sorted(
            {
                failure.rank
                for failure in failures
                if failure.rank is not None and failure.rank in victims
            }
        )
    )
    where = f" at {first.where}" if first.where else ""
    at = f" ({first.seen_at})" if first.seen_at else ""
    after = ", before any other" if others else ""
    ids = tuple(dict.fromkeys(id_ for failure in (first, *same) for id_ in failure.evidence))
    chain = (
        (
            Link(
                ranks_say(others),
                ranks_say(ranks),
                "lost its peer" if len(others) == 1 else "lost their peer",
                ids,
            ),
        )
        if others and ranks
        else ()
    )
    hosts = tuple(sorted({failure.host for failure in (first, *same) if failure.host}))
    return SuspectGroup(
        cell=job.cell,
        probe=PROBE,
        ranks=() if everyone else ranks,
        how="failed-first",
        says=f"{who} {first.says}{where}{at}{after}",
        mode="crash",
        victims=others,
        chain=chain,
        evidence=ids,
        world_size=max(len(world), 1),
        hosts=hosts,
    )


def _echoes_only(job: LogJob, failures: Sequence[LogFailure]) -> SuspectGroup:
    """Everything that failed only repeats that somebody else is gone, and of that one nothing is
    told.
    """
    world = world_of(job, failures)
    spoke = {failure.rank for failure in failures if failure.rank is not None}
    silent = tuple(rank for rank in world if rank not in spoke)
    first = failures[0]
    who = (
        ranks_say((first.rank,))
        if first.rank is not None
        else "The launcher"
        if first.echo_of.startswith("launcher")
        else "A rank"
    )
    says = f"{who} {first.says}"
    if first.echo_of == "launcher-stops":
        # torchrun passes on what it was sent; what it sends by itself is SIGTERM
        own = re.search(r"SIG(?:HUP|INT)\b", first.text)
        why = "it was sent that signal itself" if own else "why it ended them the log does not say"
        says += f" ({first.seen_at}); {why}"
    elif first.echo_of != "launcher":
        gone = "a rank" if who == "The launcher" else "another one"
        says += f" ({first.seen_at}), which only repeats that {gone} is gone"
    ranks: tuple[int, ...] = ()
    if spoke and 0 < len(silent) < len(world) and len(silent) <= len(spoke):
        ranks = silent
        says += f"; how {ranks_say(silent)} ended the log does not say"
    return SuspectGroup(
        cell=job.cell,
        probe=PROBE,
        ranks=ranks,
        how="not-visible" if ranks else "failed-first",
        says=says,
        mode="crash",
        victims=tuple(sorted(rank for rank in spoke if rank not in ranks)) if ranks else (),
        evidence=first.evidence,
        world_size=max(len(world), 1),
    )


def _unfailed(facts: Facts, job: LogJob) -> Situation:
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
    if said or well or left or all_made:
        done_before = any(
            event.event == "already-trained" for event in empty
        )  # the step that is told is the one that was resumed
        nothing = done_before or (
            not step and (bool(empty) or step == 0 or any(one.nothing_line for one in told))
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
            ids = _ids((*said, *well, *told))[:8]
            return _ended(_group(job, "failed-first", says, "crash", ids))
        if (lingering := _did_not_end(job, said)) is not None:
            return _ended(lingering)
        where = f" at {count}" if count else ""
        says = f"Nothing failed: the job finished{where}{how}"
        return Situation(job.cell, "healthy", conclusive=True, says=says)
    slow = next(
        (event for event in facts.of(LogEvent, cell=job.cell) if event.event == "straggler-told"),
        None,
    )
    if slow is not None:
        return _slow(job, slow)
    waiting = _still_waiting(facts, job)
    says = _stops(job, last, count)
    stopped = phase_group(facts, job, says)
    if waiting is not None:
        return _ended(replace(waiting, phase=stopped.phase) if stopped is not None else waiting)
    words = _last_words(facts, job, told, says)
    if stopped is not None and stopped.waits and (words is None or words.mode == "hang"):
        return _ended(stopped)
    groups = tuple(one for one in (words, stopped) if one is not None)
    return Situation(
        job.cell,
        "undetermined",
        conclusive=False,
        says=says if groups else _goes_on(job, last, count) or says,
        groups=groups,
        tentative=bool(groups),
    )


def _epochs_left(last: LogProgress | None) -> bool:
    """Whether its last line tells of an epoch with others to come: what is full is that one's bar.
    An epoch may be counted from 0.
    """
    if last is None or last.epoch is None or last.of_epochs is None:
        return False
    return last.epoch < last.of_epochs - 1


def _did_not_end(job: LogJob, said: Sequence[LogProgress]) -> SuspectGroup | None:
    """The training was over by its own word, and yet somebody had to press Ctrl-C."""
    done = next((one for one in said if one.pressed_at), None)
    if done is None:
        return None
    says = (
        f"It said that it was done ({done.seen_at}: {done.finished_line[:100]}) and did not end"
        f" until somebody pressed Ctrl-C ({done.pressed_at})"
    )
    return _group(job, "stuck-inside", says, "hang", done.evidence)


def _left_behind(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """A listing of processes shows some of several alike ended and others alive."""
    shown = max(
        facts.of(ChildrenGone, cell=job.cell),
        key=lambda one: len(one.gone) + len(one.alive),
        default=None,
    )
    if shown is None:
        return None
    gone, alive = len(shown.gone), len(shown.alive)
    says = (
        f"{gone} of {gone + alive} processes of {shown.program} below pid {shown.parent}"
        f" {'has' if gone == 1 else 'have'} ended (<defunct>), and"
        f" {'pid' if alive == 1 else 'pids'} {', '.join(map(str, shown.alive[:4]))}"
        f" {'lives' if alive == 1 else 'live'} on without"
        f" {'it' if gone == 1 else 'them'} ({shown.seen_at})"
    )
    return _group(job, "left", says, "hang", shown.evidence)


def _still_waiting(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The log ends with a process that says what it waits for (a lock, or ranks that did not
    come), or that tries again and again.
    """
    events = facts.of(LogEvent, cell=job.cell)
    got = {event.captured.get("id") for event in events if event.event == "lock-got"}
    waits = [
        event
        for event in events
        if (event.event in WAITS or (event.count >= AGAIN and tries_again(event.line)))
        and not (event.event == "lock-asked" and event.captured.get("id") in got)
        and not (event.event == "world-waits" and _all_came(event))
        and not (event.event == "rank-joining" and _all_joined(events))
        and not (event.event == "workers-silent" and event.count < AGAIN)
    ]
    last = max(waits, key=lambda event: event.place or 0, default=None)
    # of alike lines an event keeps the first one's place
    alike = sum(event.count - 1 for event in waits)
    if last is None or not job.ends or job.last_place - (last.place or 0) > 1 + alike:
        return None
    what = "a wait" if last.event in WAITS else "tries in vain"
    says = f"The log ends with {what} ({last.seen_at}): {quoted(last.line)}"
    return replace(_group(job, "stuck-inside", says, "hang", _ids(waits)[:8]), waits=True)


def _told_wait(facts: Facts, job: LogJob, found: Situation) -> SuspectGroup | None:
    """The log ends with a wait in words that nothing else knows, in the phase that was found."""
    told = [event for event in facts.of(LogEvent, cell=job.cell) if event.event == WAIT_TOLD]
    if not told or not job.ends:
        return None
    last = told[-1]
    who = "Whoever watched it says" if last.captured.get("watched") else "The log ends with a wait"
    says = f"{who} ({last.seen_at}): {quoted(last.line).rstrip(':')}"
    phase = found.groups[0].phase if found.groups else ""
    group = _group(job, "stuck-inside", says, "hang", _ids(told)[:8])
    return replace(group, waits=True, phase=phase)


def _all_came(event: LogEvent) -> bool:
    world, joined = event.number("world_size"), event.number("joined")
    return world is None or world == joined


def _all_joined(events: Sequence[LogEvent]) -> bool:
    joining = [event for event in events if event.event == "rank-joining"]
    world = max((event.number("world") or 0 for event in joining), default=0)
    return len({event.number("rank") for event in joining}) >= world


def _left_well(facts: Facts, job: LogJob) -> list[LogEvent]:
    """The launcher's words that its processes left of their own will, where the log ends with
    them and no process is known to be missing.
    """
    left = [event for event in facts.of(LogEvent, cell=job.cell) if event.event == "process-left"]
    pids = {event.captured.get("pid") for event in left}
    ends = bool(left) and job.last_place - max(event.place or 0 for event in left) <= 2
    return left if ends and len(pids) >= (job.world_size or 2) else []


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
    return _ended(_group(job, "slow", says, "slow", told.evidence, ranks))


# Lines in which a process says that it waits, and for what.
WAITS = frozenset({"lock-waiting", "lock-asked", "world-waits", "rank-joining", "workers-silent"})
AGAIN = 3  # such lines, of which one comes a minute: workers that compile are silent as well
NEAR_LINES = 80
NAN = re.compile(r"(?i)\b(?:loss|grad_?norm)\w{0,30}['\"]?(?: ?[:=] ?| )nan\b")
TROUBLE = re.compile(
    r"(?i)error|fail|cannot|can't|could not|unable|denied|invalid|refused|timed?"
    r" ?out|abort|unreachable|mismatch|no such|not found|no space|exceeded|Xid|\bWARN\b|limit"
)
HARMLESS = frozenset({"given", STRANGER})
_RETRY = re.compile(r"(?i)\bretry\b")


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
                if event.event == "nan-printed" and event not in events
            ),
        ]
        return _diverged(job, [event for event in events if event.event == "nan-printed"], says)
    apart = bars_of_other_lengths(facts.of(LogWork, cell=job.cell))
    if apart:
        return _group(job, "stuck-inside", says, "hang", _ids(apart))
    counts = counts_apart(facts.of(RankCount, cell=job.cell))
    if counts and counts[0].tells and stepped < 0:
        return _group(job, "stuck-inside", says, "hang", _ids(counts))
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
        return _group(job, "slow", says, "slow", lagging.evidence, ranks)
    trouble = any(TROUBLE.search(event.line) and not _not_yet(event) for event in near)
    diverged = all(event.event.startswith("nan") for event in near)
    mode: Mode = "check" if diverged else "crash" if trouble else "hang"
    return _group(job, "failed-first" if trouble else "stuck-inside", says, mode, _ids(near)[:8])


def _not_yet(event: LogEvent) -> bool:
    """Whether it tells of who tries again, and has not failed yet."""
    return tries_again(event.line) or _RETRY.search(event.line) is not None


def _diverged(job: LogJob, events: Sequence[LogEvent], says: str) -> SuspectGroup | None:
    """The last step told of has no number for its loss."""
    return _group(job, "stuck-inside", says, "check", _ids(events)[:8]) if events else None


def _group(
    job: LogJob,
    how: SuspectHow,
    says: str,
    mode: Mode,
    evidence: tuple[str, ...],
    ranks: tuple[int, ...] = (),
) -> SuspectGroup:
    """These ranks of one attempt, or nobody in particular."""
    world = job.world_size or 1
    return SuspectGroup(
        job.cell, PROBE, ranks, how, says, mode, evidence=evidence, world_size=world
    )


def _ids(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for fact in facts for id_ in fact.evidence))


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


def _consequence(facts: Facts, last: Situation, before: Situation) -> bool:
    """Did the last attempt only fail because of the one before, whose port is still held, or
    which ended the ranks that this one lost?
    """
    failures = [failures_of(facts, one.cell) for one in (last, before)]
    if not last.groups or not before.groups or not all(failures):
        return False
    origins = [next((failure for failure in of if not failure.echo), None) for of in failures]
    if origins[0] is None:
        return origins[1] is not None
    return any(words in origins[0].text for words in ("ddress already in use", "EADDRINUSE"))


def _ordered_groups(facts: Facts, attempts: Sequence[Situation]) -> tuple[SuspectGroup, ...]:
    """The groups of the last attempt, then of the earlier ones; where the last one only follows
    from an earlier one, that one's first.
    """
    last, earlier = attempts[0], attempts[1:]
    if not last.groups:
        return ()
    before = [
        replace(group, says=f"attempt {_number(one.cell)}: {group.says}")
        for one in earlier
        for group in one.groups
    ]
    if earlier and _consequence(facts, last, earlier[-1]):
        first = len(next(one for one in earlier if one.groups).groups)
        return (*before[:first], *last.groups, *before[first:])
    return (*last.groups, *before)


def _standings(facts: Facts, job: LogJob, failures: Sequence[LogFailure]) -> tuple[Standing, ...]:
    """One standing per rank that is known of."""
    failed = {failure.rank: failure for failure in reversed(failures) if failure.rank is not None}
    endings = {
        ending.rank: ending
        for ending in facts.of(RankEnding, cell=job.cell)
        if ending.rank is not None and ending.role == "rank"
    }
    found = []
    for rank in world_of(job, failures)[:MOST_ROWS]:
        failure, ending = failed.get(rank), endings.get(rank)
        known = [one for one in (failure, ending) if one is not None]
        state: RankState = "unseen"
        if failure is not None or (ending is not None and (ending.abnormal or ending.by_launcher)):
            state = "crashed"
        elif ending is not None:
            state = "exited"
        found.append(
            Standing(
                rank,
                state,
                host=next((one.host for one in known if one.host), ""),
                pid=next((one.pid for one in reversed(known) if one.pid), None),
                where=failure.where if failure is not None else "",
                ending=ending,
            )
        )
    return tuple(found)
