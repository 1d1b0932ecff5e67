"""Joins of what logs tell: one order over all files, one ending per rank, and which of the
failures was first.
"""

from __future__ import annotations

import bisect
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts.endings import SIGNALS, RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.failure_wording import LAUNCHER_TYPES, but_of_strangers, went_on, words_of
from trainprobe.facts.fatal_signals import FatalSignal
from trainprobe.facts.kernel_logs import OomKill, Xid
from trainprobe.facts.log_endings import ending_of, merged_endings, of_launchers
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_exceptions import WARNED
from trainprobe.facts.log_failures import LogFailure
from trainprobe.facts.log_jobs import LogJob, LogProgress
from trainprobe.facts.outside_ends import behind_the_schedulers_end, cancelled_from_outside
from trainprobe.model.facts import Fact
from trainprobe.stacks.traceback_text import NAME_CUT_OFF

RANKS_CAP = 100_000
_NOT_STARTED = frozenset({2, 13})  # ENOENT, EACCES
_TRAINS = re.compile(r"python|torchrun|accelerate|deepspeed|\.(?:py|sh)$")
_DISTRIBUTED = re.compile(r"torch/(?:distributed|nn/parallel)/")
# Signals that come from outside or out of the blue, and leave a process no time for words.
SILENT = frozenset({4, 7, 8, 9, 11})
# SLURM's states of a job that did not end well, and of one that SLURM itself ended.
CUT_OFF = frozenset({"TIMEOUT", "PREEMPTED", "NODE_FAIL", "DEADLINE", "BOOT_FAIL", "REVOKED"})
BAD_STATES = CUT_OFF | {"FAILED", "CANCELLED", "OUT_OF_MEMORY", "REQUEUED"}


def join_log_failures(facts: list[Fact]) -> list[Fact]:
    """Add the failures of every attempt in their order, and say of the endings which the
    launcher brought about.
    """
    cells = {fact.cell for fact in facts if isinstance(fact, LogJob)}
    for cell in sorted(cells):
        facts = _cell(facts, cell)
    return facts


def _cell(facts: list[Fact], cell: str) -> list[Fact]:
    mine = [fact for fact in facts if fact.cell == cell]
    progress = [fact for fact in mine if isinstance(fact, LogProgress)]
    exceptions = [fact for fact in mine if isinstance(fact, RankException)]
    events = [fact for fact in mine if isinstance(fact, LogEvent) and fact.place is not None]
    signals = [fact for fact in mine if isinstance(fact, FatalSignal)]
    endings = _endings(mine, events, signals)
    logged = [ending for ending in endings if ending.place is not None]
    jobs = [fact for fact in mine if isinstance(fact, LogJob)]
    merged = _with_ranks(
        merged_endings(of_launchers(logged, {job.launcher for job in jobs})),
        exceptions,
        {host for job in jobs for host in job.hosts},
    )
    exceptions = lived_through(exceptions, merged, progress)
    exceptions, repeats = _after_giving_up(_in_time(exceptions, mine), events)
    whose = _whose(exceptions, merged)
    owned = {
        id(fact): replace(fact, rank=whose, role="rank")
        for fact in exceptions
        if whose is not None and _nameless(fact)
    }
    exceptions = [owned.get(id(fact), fact) for fact in exceptions]
    told = {
        ending.place for ending in logged
    }  # what a launcher says of an end is an end, not a word of whoever ended
    if not _failed(exceptions, signals, merged, progress):
        exceptions = [
            replace(fact, handled=False) if _spared(fact) else fact for fact in exceptions
        ]  # then it was what ended it after all
    raised = {fact.place: fact for fact in exceptions}
    new = {id(event): _by_its_traceback(event, raised.get(event.place)) for event in events}
    facts = [new.get(id(fact), fact) for fact in facts]
    events = [new[id(event)] for event in events]
    said = [
        event
        for event in but_of_strangers(events)
        if (event.rank is not None or event.place not in told)
        and not any(_is_last_line(event, fact) for fact in repeats)
    ]
    named = [fact for fact in exceptions if fact.type != NAME_CUT_OFF]
    if words_of(named, signals, said, progress):
        exceptions = named  # the one that is cut off was raised behind a failure that has a name
    failures = words_of(exceptions, signals, said, progress)
    cancelled = cancelled_from_outside(events, failures, merged)
    if cancelled is not None:
        outside = replace(cancelled, echo=False, fatal=True)
        facts = [outside if fact is cancelled else fact for fact in facts]
        said = [outside if fact is cancelled else fact for fact in said]
        failures = words_of(exceptions, signals, said, progress)
    size = next((job.world_size for job in jobs), None)
    left = _left_over(failures, merged, size)
    if left is not None:
        place, rank = left
        exceptions = [
            replace(fact, rank=rank) if fact.rank is None and fact.place == place else fact
            for fact in exceptions
        ]
        signals = [
            replace(fact, rank=rank) if fact.rank is None and fact.place == place else fact
            for fact in signals
        ]
        merged = [
            (
                replace(one, rank=rank)
                if one.rank is None and one.role == "rank" and one.place == place
                else one
            )
            for one in merged
        ]
        failures = words_of(exceptions, signals, said, progress)
    merged = _stopped(merged, failures)
    merged = _killed_with_all(merged, events)
    merged = _killed(merged, [fact for fact in facts if isinstance(fact, OomKill)])
    failures = behind_the_schedulers_end([*failures, *_deaths(merged, failures)])
    if not any(not failure.echo for failure in failures):
        failures += _by_the_kernel(facts, cell, progress)
    ordered = _ordered(_but_of_the_last_agent(failures, progress, events))
    merged = _with_orders(merged, ordered)
    gone = {id(ending) for ending in logged}
    kept = [
        fact
        for fact in facts
        if id(fact) not in gone
        and not (isinstance(fact, (RankException, FatalSignal)) and fact.cell == cell)
    ]
    return [*kept, *exceptions, *signals, *merged, *ordered]


def _but_of_the_last_agent(
    failures: Sequence[LogFailure], progress: Sequence[LogProgress], events: Sequence[LogEvent]
) -> Sequence[LogFailure]:
    """None, where ranks worked and only an agent of torchrun complains: the one that leaves last
    warns that the store of the first is gone.
    """
    worked = any(one.marks or one.finished for one in progress) or any(
        event.event == "launcher-succeeded" for event in events
    )
    only = all(failure.echo_of == "rendezvous-lost" for failure in failures)
    return () if worked and only else failures


def _endings(
    facts: Sequence[Fact], events: Sequence[LogEvent], signals: Sequence[FatalSignal]
) -> list[RankEnding]:
    """Every end that is told of, by whomever."""
    endings = [fact for fact in facts if isinstance(fact, RankEnding)]
    told_of = {ending.place for ending in endings}
    endings += [
        ending
        for event in events
        if event.event == "process-ended" and event.place not in told_of
        for ending in ending_of(event)
    ]
    ended = {ending.rank for ending in endings}
    endings += [
        _end_of(fact)
        for fact in signals
        if not fact.echo
        and not fact.without_exception
        and fact.place is not None
        and fact.rank not in ended
    ]
    return _of_the_programs(endings, events)


def _of_the_programs(endings: Sequence[RankEnding], events: Sequence[LogEvent]) -> list[RankEnding]:
    """Without the tasks of which Slurm said that it could not start their program, and that is none
    that trains: `srun hostname` and `srun ray start` are no ranks, and the script goes on.
    """
    failed = [
        event
        for event in events
        if event.event == "program-not-started"
        and _TRAINS.search(event.captured.get("program", "")) is None
    ]
    began = min((event.place or 0 for event in failed), default=sys.maxsize)
    theirs = [one for one in endings if one.code in _NOT_STARTED and (one.place or 0) > began]
    theirs.sort(key=lambda one: one.place or 0)
    gone = {id(one) for one in theirs[: sum(event.count for event in failed)]}
    return [one for one in endings if id(one) not in gone]


def _by_its_traceback(event: LogEvent, own: RankException | None) -> LogEvent:
    """The last line of a traceback ends nobody where Python ignored that, the program handled it,
    or it only repeats that somebody else was ended.
    """
    if own is None or not (own.handled or own.echo_of == "stopped"):
        return event
    return replace(event, fatal=False, echo=event.echo or own.echo, lived_through=own.handled)


def _with_orders(endings: Sequence[RankEnding], ordered: Sequence[LogFailure]) -> list[RankEnding]:
    """Each rank's end with the place of its failure among all, and whether that is an echo."""
    orders = {
        failure.rank: failure.order for failure in reversed(ordered) if failure.rank is not None
    }
    echoes = {failure.rank for failure in ordered if failure.echo} - {
        failure.rank for failure in ordered if not failure.echo
    }
    return [
        (
            replace(end, order=orders.get(end.rank), echo=end.echo or end.rank in echoes)
            if end.rank is not None
            else end
        )
        for end in endings
    ]


def _after_giving_up(
    exceptions: Sequence[RankException], events: Sequence[LogEvent]
) -> tuple[list[RankException], list[RankException]]:
    """All, and those that only repeat what was told: a rank raises them inside torch.distributed
    once its own watchdog has given up a collective, whose data are not there.
    """
    gave_up: dict[int, int] = {}
    for event in events:
        if event.event == "collective-timeout" and event.rank is not None:
            place = event.place or 0
            gave_up[event.rank] = min(place, gave_up.get(event.rank, place))
    done, repeats = [], []
    for fact in exceptions:
        if (
            not fact.echo
            and fact.rank in gave_up
            and (fact.place or 0) > gave_up[fact.rank]
            and fact.frames
            and _DISTRIBUTED.search(fact.frames[-1].file)
        ):
            fact = replace(fact, echo=True, echo_of="collective-timeout")  # noqa: PLW2901
            repeats.append(fact)
        done.append(fact)
    return done, repeats


def _is_last_line(event: LogEvent, of: RankException) -> bool:
    return event.rank == of.rank and bool(of.message) and of.message[:40] in event.line


def _in_time(exceptions: Sequence[RankException], facts: Sequence[Fact]) -> list[RankException]:
    """Give what error files tell its place among the lines of the logs, by the clock."""
    if all(fact.place is not None or fact.at is None for fact in exceptions):
        return list(exceptions)
    timed = [
        fact
        for fact in facts
        if isinstance(fact, (RankException, RankEnding, LogEvent, LogProgress))
        and fact.at is not None
        and fact.place is not None
    ]
    clock = sorted((fact.at or 0.0, fact.place or 0) for fact in timed)
    done = []
    for fact in exceptions:
        place = fact.place
        if place is None and fact.at is not None and clock:
            place = clock[max(bisect.bisect_right(clock, (fact.at, sys.maxsize)) - 1, 0)][1]
        done.append(replace(fact, place=place))
    return done


def _left_over(
    failures: Sequence[LogFailure], endings: Sequence[RankEnding], size: int | None
) -> tuple[int, int] | None:
    """(place, rank) of the only failure that names no rank, where all ranks but one are known to
    have failed in other ways.
    """
    nameless = [
        failure
        for failure in failures
        if failure.rank is None and not failure.echo and failure.what in ("exception", "signal")
    ]
    if len(nameless) != 1 or size is None or not 2 <= size <= RANKS_CAP:
        return None
    spoke = {failure.rank for failure in failures if failure.rank is not None} | {
        one.rank for one in endings if one.by_launcher and one.rank is not None
    }
    silent = set(range(size)) - spoke
    return (nameless[0].place, silent.pop()) if len(silent) == 1 else None


def _end_of(fact: FatalSignal) -> RankEnding:
    """Who says that it dies of a signal has ended by it, whether or not somebody tells so."""
    number = SIGNALS.index(fact.signal_name) + 1 if fact.signal_name in SIGNALS else None
    return RankEnding(
        evidence=fact.evidence,
        cell=fact.cell,
        rank=fact.rank,
        how="signalled",
        signal=number,
        signal_name=fact.signal_name,
        at=fact.at,
        failed_at=fact.at,
        seen_by="nobody",
        place=fact.place,
        seen_at=fact.seen_at,
        host=fact.host,
    )


def _nameless(fact: RankException) -> bool:
    return (
        fact.rank is None
        and not fact.handled
        and not fact.echo
        and fact.role != "launcher"
        and fact.type.rsplit(".", 1)[-1] not in LAUNCHER_TYPES
    )


def _failed(
    exceptions: Sequence[RankException],
    signals: Sequence[FatalSignal],
    endings: Sequence[RankEnding],
    progress: Sequence[LogProgress],
) -> bool:
    """Is there a failure, an end or a step behind every exception that a process may survive?"""
    spared = max(
        (fact.place for fact in exceptions if _spared(fact) and fact.place is not None),
        default=None,
    )
    if spared is None:
        return True
    stepped = any(place > spared for one in progress for place, _ in one.marks) or any(
        one.finished for one in progress
    )
    own = any(not fact.handled and not fact.echo for fact in exceptions) or any(
        not fact.echo for fact in signals
    )
    return stepped or own or any(one.how == "exited" and one.code == 0 for one in endings)


def _spared(fact: RankException) -> bool:
    """Whether a process may live on behind it: a traceback in a warning, or that of a thread beside
    the main one, such as the loader's, without which the main one waits for ever.
    """
    return fact.source == WARNED or fact.thread not in ("", "MainThread")


def _whose(exceptions: Sequence[RankException], endings: Sequence[RankEnding]) -> int | None:
    """The rank of the only exception that names none: the only one that ended with an error of
    its own, or torchrun's first.
    """
    if len({(fact.type, fact.message[:80]) for fact in exceptions if _nameless(fact)}) != 1:
        return None
    spoke = {
        fact.rank
        for fact in exceptions
        if fact.rank is not None and not fact.echo and not fact.handled
    }
    failed = [
        one
        for one in endings
        if one.rank is not None
        and one.role == "rank"
        and one.how == "exited"
        and one.code not in (0, None)
        and one.rank not in spoke
    ]
    first = [one for one in failed if one.phase == "first"] or failed
    return first[0].rank if len(first) == 1 else None


def lived_through(
    exceptions: Sequence[RankException],
    endings: Sequence[RankEnding],
    progress: Sequence[LogProgress],
) -> list[RankException]:
    """Mark as handled what did not end its process: steps came after it, or its process is known to
    have ended otherwise.

    Steps alone may deceive, since a buffered stdout comes late: who is known to have ended with a
    code of its own did so by its last exception.
    """
    own = {one.rank: one for one in endings if one.rank is not None and one.role == "rank"}
    by_code = {
        rank for rank, one in own.items() if one.how == "exited" and one.code not in (0, None)
    }
    last: dict[int | None, RankException] = {}
    for fact in sorted(exceptions, key=lambda one: one.place or 0):
        if not fact.handled and fact.thread in ("", "MainThread"):
            last[fact.rank] = fact
    deadly = {id(last[rank]) for rank in by_code if rank in last}
    explained = any(not last[rank].echo for rank in by_code if rank in last)
    table = any(one.phase == "first" for one in endings)
    done = []
    for fact in exceptions:
        ending = own.get(fact.rank) if fact.rank is not None else None
        handled = fact.handled
        if not handled and id(fact) not in deadly and fact.place is not None:
            told = table and (fact.rank not in by_code if fact.rank is not None else not by_code)
            stopped = (
                explained and ending is not None and ending.signal in (15, 2) and not fact.echo
            )
            handled = stopped or went_on(
                fact.rank, fact.place, _in_one_order(fact, progress), steps=1 if told else 2
            )
        done.append(replace(fact, handled=handled))
    return done


def _in_one_order(fact: RankException, progress: Sequence[LogProgress]) -> list[LogProgress]:
    """The progress of which it is known whether it came before or after: by clocks, or since it
    stands in the same file (stdout may lie beside stderr).
    """
    file = fact.seen_at.rpartition(":")[0]
    return [
        one
        for one in progress
        if (one.at is not None and fact.at is not None) or one.seen_at.rpartition(":")[0] == file
    ]


def _done(progress: Sequence[LogProgress]) -> bool:
    """Did training come to its end, by its own word or by its last step?"""
    return any(
        one.finished or (one.of is not None and one.step is not None and 0 < one.of <= one.step)
        for one in progress
    )


def _with_ranks(
    endings: list[RankEnding], exceptions: Sequence[RankException], spoke: set[str]
) -> list[RankEnding]:
    """A launcher that names a local rank or a pid: on one host the local rank is the rank.
    `spoke` are the hosts whose names stand before lines.
    """
    hosts = {ending.host for ending in endings if ending.host} | {
        fact.host for fact in exceptions if fact.host
    }
    hosts |= spoke
    by_pid = {fact.pid: fact.rank for fact in exceptions if fact.pid and fact.rank is not None}
    by_pid |= {
        ending.pid: ending.rank for ending in endings if ending.pid and ending.rank is not None
    }
    taken = {ending.rank for ending in endings if ending.rank is not None}
    done = []
    for ending in endings:
        rank = ending.rank
        if rank is None and ending.role == "rank":
            rank = by_pid.get(ending.pid) if ending.pid else None
            if rank is None and ending.phase.startswith("local_rank ") and len(hosts) <= 1:
                local = int(ending.phase.removeprefix("local_rank "))
                rank = local if local not in taken else None
        done.append(replace(ending, rank=rank) if rank is not None else ending)
    return done


def _stopped(endings: list[RankEnding], failures: Sequence[LogFailure]) -> list[RankEnding]:
    """Ended by the launcher: SIGTERM where another had failed, or where others ended otherwise;
    SIGKILL where another said why it failed.
    """
    own = [failure for failure in failures if not failure.echo]
    others = [
        one for one in endings if one.role == "rank" and one.abnormal and one.signal not in (15, 2)
    ]
    done = []
    for ending in endings:
        told = any(failure.rank != ending.rank for failure in own)
        by_term = ending.signal in (15, 2) and (told or bool(others))
        by_kill = (
            ending.signal == 9
            and ending.how != "oom_killed"
            and ending.phase != "first"
            and told
            and _later(ending, own)
        )
        done.append(
            replace(ending, by_launcher=True)
            if ending.role == "rank" and (by_term or by_kill)
            else ending
        )
    return done


def _killed_with_all(endings: list[RankEnding], events: Sequence[LogEvent]) -> list[RankEnding]:
    """A launcher has said that it now kills all others: whoever is killed behind that line is one
    of them.
    """
    said = min((fact.place or 0 for fact in events if fact.kills_all), default=None)
    if said is None:
        return endings
    return [
        replace(one, by_launcher=True)
        if one.signal in (9, 15)
        and one.how != "oom_killed"
        and one.place is not None
        and one.place > said
        else one
        for one in endings
    ]


def _later(ending: RankEnding, own: Sequence[LogFailure]) -> bool:
    first = min(failure.place for failure in own)
    return ending.place is None or ending.place >= first


def _killed(endings: list[RankEnding], kills: Sequence[OomKill]) -> list[RankEnding]:
    """A process that the kernel says it killed for want of memory."""
    pids = {kill.pid for kill in kills if kill.pid}
    return [
        (
            replace(one, how="oom_killed", by_launcher=False)
            if one.pid in pids and one.signal in (9, None) and one.role == "rank"
            else one
        )
        for one in endings
    ]


def _deaths(endings: Sequence[RankEnding], failures: Sequence[LogFailure]) -> list[LogFailure]:
    """Ends that nobody explained in words."""
    spoke = {failure.rank: failure for failure in failures if failure.rank is not None}
    own = [failure for failure in failures if not failure.echo]
    late = any(failure.echo for failure in failures)
    found: list[LogFailure] = []
    for ending in endings:
        if not (ending.abnormal or (ending.role == "scheduler" and ending.phase in BAD_STATES)) or (
            ending.rank is not None
            and ending.rank in spoke
            and not (ending.signal in SILENT and spoke[ending.rank].echo)
        ):
            continue
        name = ending.signal_name or (f"signal {ending.signal}" if ending.signal else "")
        says = (
            "was killed for want of memory"
            if ending.how == "oom_killed"
            else f"died of {name}"
            if name
            else f"ended with exit code {ending.code}"
        )
        if ending.role == "scheduler":
            says = f"ended as SLURM's {ending.phase}"
        # A code of 1 only says that there was a reason; SIGABRT beside timeouts is the watchdog's.
        weak = (
            ending.signal is None
            and ending.phase not in CUT_OFF
            and ending.how != "oom_killed"
            and (bool(own) or ending.role in ("launcher", "scheduler"))
        )
        aborted = ending.signal == 6 and late and ending.phase != "first"
        silent = ending.signal in SILENT or ending.how == "oom_killed"
        echo = (
            aborted
            or (weak and bool(own))
            or (ending.role in ("launcher", "scheduler") and bool(own))
        )
        if ending.rank is None and ending.role == "rank" and own and not silent:
            echo = True
        found.append(
            LogFailure(
                evidence=ending.evidence,
                cell=ending.cell,
                rank=ending.rank,
                what="ending",
                kind=says,
                says=says,
                echo=echo,
                echo_of=("aborted" if aborted else "launcher") if echo else "",
                pid=ending.pid,
                at=ending.at,
                place=_place(ending, failures, silent=silent),
                host=ending.host,
                seen_at=ending.seen_at,
                text=ending.reason,
            )
        )
    return found


def _by_the_kernel(
    facts: Sequence[Fact], cell: str, progress: Sequence[LogProgress]
) -> list[LogFailure]:
    """Where no rank says why, what the kernel says of kills and GPUs while the job ran; nothing
    of a job that finished.
    """
    found: list[LogFailure] = []
    if any(one.finished for one in progress):
        return found
    began = min(
        (fact.first_at for fact in facts if isinstance(fact, LogJob) and fact.first_at is not None),
        default=None,
    )
    for fact in facts:
        if (
            began is not None
            and getattr(fact, "at", None) is not None
            and getattr(fact, "at", began) < began - 60
        ):
            continue
        if isinstance(fact, OomKill):
            says = f"killed process {fact.pid} ({fact.name}) for want of memory"
        elif isinstance(fact, Xid):
            says = f"reported Xid {fact.code}{f' of {fact.device}' if fact.device else ''}"
        else:
            continue
        found.append(
            LogFailure(
                evidence=fact.evidence,
                cell=cell,
                what="kernel",
                kind=says,
                says=says,
                at=fact.at,
                text=getattr(fact, "text", ""),
            )
        )
    return found[:1]


def _place(ending: RankEnding, failures: Sequence[LogFailure], *, silent: bool) -> int:
    """A launcher tells of a death when it notices it: who died without a word died before the
    first that missed it.
    """
    place = ending.place or 0
    if not silent or ending.by_launcher or not failures:
        return place
    echoes = [failure.place for failure in failures if failure.echo]
    own = [failure for failure in failures if not failure.echo]
    before = min(echoes, default=place)
    if not own:
        return min(place, before - 1)
    first = min(own, key=lambda failure: failure.place)
    earlier = ending.at is not None and first.at is not None and ending.at + 1 < first.at
    if ending.phase == "first" or earlier or ending.how == "oom_killed":
        return min(place, before - 1, first.place - 1)
    return place if first.place < before else min(place, before - 1)


def _ordered(failures: Sequence[LogFailure]) -> list[LogFailure]:
    """In order; what may have been stopped by somebody else is an echo where somebody else
    failed before.
    """
    ordered = sorted(
        failures,
        key=lambda failure: (failure.place, failure.rank if failure.rank is not None else -1),
    )
    done: list[LogFailure] = []
    for count, failure in enumerate(ordered):
        now = failure
        if failure.echo_of == "maybe-stopped":
            before = any(not other.echo for other in done)
            now = replace(failure, echo=before, echo_of="stopped" if before else "")
        elif failure.echo_of == "stopped" and not any(
            other.place < failure.place or not other.echo
            for other in ordered
            if other is not failure
        ):
            now = replace(failure, echo=False, echo_of="")
        done.append(replace(now, order=count))
    return done
