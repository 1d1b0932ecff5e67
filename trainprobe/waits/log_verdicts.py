"""The verdict on a job of which logs are left: attempt by attempt, who failed first, who did not
come, or that nothing failed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import (
    Facts,
    LogFailure,
    LogJob,
    LogProgress,
    RankEnding,
    Rung,
)
from trainprobe.facts.compared_calls import FOUND_APART
from trainprobe.facts.process_listings import ChildrenGone
from trainprobe.model.diagnosis import Link, RankState
from trainprobe.waits.absentees import world_of
from trainprobe.waits.crash import parted_group
from trainprobe.waits.divergence import divergence_in, ranks_say
from trainprobe.waits.import_lock_waits import lock_group
from trainprobe.waits.launcher_signals import interrupted, signalled
from trainprobe.waits.left_alone import alone_group
from trainprobe.waits.log_hangs import hang_groups
from trainprobe.waits.log_stack_hangs import pressed, still_group
from trainprobe.waits.log_suspects import ended, log_group
from trainprobe.waits.situation import Situation, failed_before
from trainprobe.waits.standings import Standing
from trainprobe.waits.suspects import PROBE, SuspectGroup
from trainprobe.waits.timeline import echoes_in, failures_of
from trainprobe.waits.unfailed_logs import did_not_end, unfailed
from trainprobe.waits.waits_told import told_wait

LAST = "job"
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
        still = did_not_end(job, done) or still_group(facts, job, failures)
        if still is not None:
            return ended(still)
    if not origins and (by_hand := interrupted(facts, job)) is not None:
        return ended(still_group(facts, job, failures) or by_hand)
    if origins:
        divergence = divergence_in(facts, job.cell, world_of(job, failures), hung=True)
        if divergence is not None and FOUND_APART in origins[0].text:
            ranks = _standings(facts, job, failures)
            rung = Rung((), job.cell, None, 0, PROBE, "", len(ranks), "crashed")
            return replace(ended(parted_group(rung, ranks, divergence)), origin=True)
        group = _first_group(job, failures, origins)
        return replace(ended(replace(group, divergence=divergence)), origin=True)
    hang = hang_groups(facts, job, failures)
    if hang:
        return replace(ended(hang[0]), groups=hang)
    if failures:
        return ended(alone_group(facts, job) or _echoes_only(job, failures))
    found = unfailed(facts, job)
    if found.verdict == "undetermined" and (sent := signalled(facts, job)) is not None:
        return ended(sent)
    if found.verdict == "undetermined":
        still = (
            still_group(facts, job, failures)
            or lock_group(facts, job)
            or _left_behind(facts, job)
            or told_wait(facts, job, found)
        )
        return ended(still) if still is not None else found
    return found


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
    return log_group(job, "left", says, "hang", shown.evidence)


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
