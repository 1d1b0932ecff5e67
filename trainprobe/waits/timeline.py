"""The timeline of logs for the report: how far each rank came and how it ended, and the failures
in their order, each echo folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainprobe.facts import Facts, LogEvent, LogFailure, LogJob, LogProgress, RankEnding
from trainprobe.facts.collectives import operation
from trainprobe.model.codec import to_json
from trainprobe.model.diagnosis import TimelineAttempt, TimelineEvent, TimelineRanks
from trainprobe.model.ranks import fold_ranks
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.situation import Echo, Situation

EVENTS = 40  # where the command line says nothing else
WORDS = {
    "connection-closed": "lost the connection to a peer",
    "connection-reset": "lost the connection to a peer",
    "connection-refused": "could not reach a peer",
    "broken-pipe": "lost the connection to a peer",
    "store-closed": "lost the store",
    "store-timeout": "gave up waiting at the store",
    "collective-timeout": "gave up waiting in a collective",
    "watchdog-frame": "ended by NCCL's watchdog",
    "horovod-stall": "waited in a collective for ranks that did not join it",
    "barrier-timeout": "gave up waiting at a barrier",
    "rendezvous-timeout": "gave up waiting at the rendezvous",
    "peer-timeout": "gave up waiting for a peer",
    "nccl-remote": "lost a peer inside NCCL",
    "nccl-aborted": "had NCCL communicator aborted",
    "launcher": "ended by the launcher, or its own word on it",
    "stopped": "stopped from outside afterwards",
    "aborted": "aborted afterwards",
}


def failures_of(facts: Facts, cell: str) -> tuple[LogFailure, ...]:
    """The failures of one attempt in their order."""
    return tuple(sorted(facts.of(LogFailure, cell=cell), key=lambda one: one.order))


def echoes_in(facts: Facts, attempt: Situation) -> tuple[Echo, ...]:
    """Each kind of echo of one attempt."""
    suspects = {rank for group in attempt.groups for rank in group.ranks}
    kinds: dict[str, list[LogFailure]] = {}
    for failure in failures_of(facts, attempt.cell):
        if failure.echo and failure.rank is not None and failure.rank not in suspects:
            kind = WORDS.get(failure.echo_of, failure.echo_of or "failed after it")
            kinds.setdefault(kind, []).append(failure)
    found = []
    for words, failures in kinds.items():
        ranks = tuple(sorted({one.rank for one in failures if one.rank is not None}))
        at = f" ({failures[0].seen_at})" if failures[0].seen_at else ""
        found.append(Echo(attempt.cell, ranks, f"{ranks_say(ranks)} {words}{at}"))
    return tuple(found)


def logged_extra(facts: Facts, attempts: Sequence[Situation]) -> dict[str, object]:
    """What the report of logs has beside the usual: the launcher, and `timeline`, one per
    attempt, the last attempt first. Empty where no log was read.
    """
    jobs = [job for one in attempts for job in facts.of(LogJob, cell=one.cell)]
    if not jobs:
        return {}
    extra: dict[str, object] = {
        "timeline": to_json(tuple(timeline(facts, one) for one in attempts))
    }
    most = next((job.max_events for job in jobs if job.max_events), None)
    if most:
        extra["max_events"] = most
    launcher = next((job.launcher for job in jobs if job.launcher), "")
    if launcher:
        extra["form"] = launcher
    return extra


def timeline(facts: Facts, attempt: Situation) -> TimelineAttempt:
    """`ranks`: rows of ranks that stand alike; `events`: the failures in order, echoes of one
    kind as one.
    """
    job = facts.one(LogJob, cell=attempt.cell) or LogJob()
    failures = failures_of(facts, attempt.cell)
    return TimelineAttempt(
        job.cell,
        attempt.verdict,
        attempt.says,
        job.files[:200],
        job.world_size,
        job.first_at,
        job.last_at,
        rank_rows(facts, attempt, failures),
        event_rows(failures),
    )


def rank_rows(
    facts: Facts, attempt: Situation, failures: Sequence[LogFailure]
) -> tuple[TimelineRanks, ...]:
    """Per rank the last step, the last collective, the first error and the exit status; ranks
    alike in all of them in one row.
    """
    cell = attempt.cell
    failed = {failure.rank: failure for failure in reversed(failures)}
    endings = {
        ending.rank: ending for ending in facts.of(RankEnding, cell=cell) if ending.role == "rank"
    }
    progress = {one.rank: one for one in facts.of(LogProgress, cell=cell)}
    calls = _last_calls(facts, cell)
    alike: dict[tuple[str, str, str, str], list[int]] = {}
    nobody: list[tuple[str, str, str, str]] = []
    for rank in [*(one.rank for one in attempt.ranks), None]:
        row = (
            _step(progress.get(rank)),
            calls.get(rank, ""),
            _first_error(failed.get(rank)),
            _ended(endings.get(rank)),
        )
        if rank is None:
            nobody += [row] if any(row) else []
        else:
            alike.setdefault(row, []).append(rank)
    return tuple(
        TimelineRanks(fold_ranks(ranks), *row) for row, ranks in alike.items() if any(row)
    ) + tuple(TimelineRanks("", *row) for row in nobody)


def _first_error(failure: LogFailure | None) -> str:
    """Echoes of one kind are alike, whatever each of them says in full."""
    if failure is None:
        return ""
    return (
        WORDS.get(failure.echo_of, failure.says)
        if failure.echo
        else f"{failure.says} ({failure.seen_at})"
    )


def _step(one: LogProgress | None) -> str:
    if one is None or (one.step is None and one.epoch is None):
        return "finished" if one is not None and one.finished else ""
    step = f"step {one.step}" if one.step is not None else f"epoch {one.epoch:g}"
    of = f" of {one.of}" if one.of and one.step is not None else ""
    return f"{step}{of}{', finished' if one.finished else ''}"


def _ended(ending: RankEnding | None) -> str:
    if ending is None:
        return ""
    if ending.how == "oom_killed":
        return "killed for want of memory"
    by = " by the launcher" if ending.by_launcher else ""
    return (
        f"{ending.signal_name or f'signal {ending.signal}'}{by}"
        if ending.signal
        else f"exit code {ending.code}{by}"
        if ending.code is not None
        else ending.phase
    )


def _last_calls(facts: Facts, cell: str) -> dict[int | None, str]:
    found: dict[int | None, tuple[int, str]] = {}
    for event in facts.of(LogEvent, cell=cell):
        captured, said = event.captured, ""
        if "op" in captured and "seq" in captured:
            said = f"{operation(captured['op'])} #{captured['seq']}"
        elif "completed" in captured:
            said = f"#{captured['completed']} completed"
        if said and (event.rank not in found or found[event.rank][0] <= (event.place or 0)):
            found[event.rank] = (event.place or 0, said)
    return {rank: said for rank, (_, said) in found.items()}


def event_rows(failures: Iterable[LogFailure]) -> tuple[TimelineEvent, ...]:
    """The failures in order; those of one kind stand once, where the first of them came."""
    kinds: dict[tuple[str, str], list[LogFailure]] = {}
    for failure in failures:
        kinds.setdefault(
            (failure.echo_of, "") if failure.echo else (failure.what, failure.kind), []
        ).append(failure)
    rows = []
    for same in kinds.values():
        first = same[0]
        ranks = tuple(sorted({failure.rank for failure in same if failure.rank is not None}))
        # each of them says it in words of its own
        says = WORDS.get(first.echo_of, first.says) if len(ranks) > 1 and first.echo else first.says
        rows.append(
            TimelineEvent(
                ranks,
                says,
                first.at,
                first.seen_at,
                first.where,
                first.echo,
                first.echo_of,
                len(same),
            )
        )
    return tuple(rows)
