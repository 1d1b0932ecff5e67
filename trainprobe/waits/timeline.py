"""The timeline of logs for the report: how far each rank came and how it ended, and the failures in their order, each echo folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainprobe.facts import Facts, LogEvent, LogFailure, LogProgress, RankEnding
from trainprobe.stacks.tree import fold_ranks
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.logged import LoggedView
from trainprobe.waits.logged_hangs import OPERATIONS

EVENTS = 40  # where the command line says nothing else
WORDS = {
    "connection-closed": "lost the connection to a peer",
    "connection-reset": "lost the connection to a peer",
    "connection-refused": "could not reach a peer",
    "broken-pipe": "lost the connection to a peer",
    "store-closed": "lost the store",
    "store-timeout": "gave up waiting at the store",
    "collective-timeout": "gave up waiting in a collective",
    "barrier-timeout": "gave up waiting at a barrier",
    "rendezvous-timeout": "gave up waiting at the rendezvous",
    "peer-timeout": "gave up waiting for a peer",
    "nccl-remote": "lost a peer inside NCCL",
    "nccl-aborted": "had NCCL communicator aborted",
    "launcher": "ended by the launcher, or its own word on it",
    "stopped": "stopped from outside afterwards",
    "aborted": "aborted afterwards",
}


def echoes_said(view: LoggedView) -> list[tuple[tuple[int, ...], str]]:
    """(ranks, sentence) of each kind of echo of a view."""
    kinds: dict[str, list[LogFailure]] = {}
    for failure in view.failures:
        if failure.echo and failure.rank is not None and not any(failure.rank in group.ranks for group in view.groups):
            kinds.setdefault(WORDS.get(failure.echo_of, failure.echo_of or "failed after it"), []).append(failure)
    return [
        (ranks, f"{ranks_say(ranks)} {words} ({failures[0].seen_at})" if failures[0].seen_at else f"{ranks_say(ranks)} {words}")
        for words, failures in kinds.items()
        if (ranks := tuple(sorted({failure.rank for failure in failures if failure.rank is not None})))
    ]


def logged_extra(facts: Facts, views: Sequence[LoggedView]) -> dict[str, object]:
    """What the report of logs has beside the usual: the launcher, and `timeline`, one per attempt, the last attempt first."""
    extra: dict[str, object] = {"timeline": [timeline(facts, view) for view in views]}
    most = next((view.job.max_events for view in views if view.job.max_events), None)
    if most:
        extra["max_events"] = most
    launcher = next((view.job.launcher for view in views if view.job.launcher), "")
    if launcher:
        extra["form"] = launcher
    return extra


def timeline(facts: Facts, view: LoggedView) -> dict[str, object]:
    """`ranks`: rows of ranks that stand alike; `events`: the failures in order, echoes of one kind as one."""
    return {
        "attempt": view.job.cell,
        "verdict": view.verdict,
        "says": view.says,
        "files": list(view.job.files[:200]),
        "world_size": view.job.world_size,
        "first_at": view.job.first_at,
        "last_at": view.job.last_at,
        "ranks": rank_rows(facts, view),
        "events": event_rows(view.failures),
    }


def rank_rows(facts: Facts, view: LoggedView) -> list[dict[str, object]]:
    """Per rank the last step, the last collective, the first error and the exit status; ranks alike in all of them in one row."""
    cell = view.job.cell
    failed = {failure.rank: failure for failure in reversed(view.failures)}
    endings = {ending.rank: ending for ending in facts.of(RankEnding, cell=cell) if ending.role == "rank"}
    progress = {one.rank: one for one in facts.of(LogProgress, cell=cell)}
    calls = _last_calls(facts, cell)
    alike: dict[tuple[str, str, str, str], list[int]] = {}
    nobody: list[tuple[str, str, str, str]] = []
    for rank in [*(row.rank for row in view.rows), None]:
        failure, ending, step = failed.get(rank), endings.get(rank), progress.get(rank)
        row = (_step(step), calls.get(rank, ""), _first_error(failure), _ended(ending))
        if rank is None:
            nobody += [row] if any(row) else []
        else:
            alike.setdefault(row, []).append(rank)
    rows = [_row(fold_ranks(ranks), row) for row, ranks in alike.items() if any(row)]
    return rows + [_row("", row) for row in nobody]


def _row(ranks: str, row: tuple[str, str, str, str]) -> dict[str, object]:
    return {"ranks": ranks, "last_step": row[0], "last_collective": row[1], "first_error": row[2], "exit": row[3]}


def _first_error(failure: LogFailure | None) -> str:
    """Echoes of one kind are alike, whatever each of them says in full."""
    if failure is None:
        return ""
    return WORDS.get(failure.echo_of, failure.says) if failure.echo else f"{failure.says} ({failure.seen_at})"


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
            said = f"{OPERATIONS.get(captured['op'], captured['op'].lower())} #{captured['seq']}"
        elif "completed" in captured:
            said = f"#{captured['completed']} completed"
        if said and (event.rank not in found or found[event.rank][0] <= (event.place or 0)):
            found[event.rank] = (event.place or 0, said)
    return {rank: said for rank, (_, said) in found.items()}


def event_rows(failures: Iterable[LogFailure]) -> list[dict[str, object]]:
    """The failures in order; echoes of one kind stand once, where the first of them came."""
    rows: list[dict[str, object]] = []
    by_kind: dict[tuple[str, str], tuple[dict[str, object], list[int]]] = {}
    for failure in failures:
        key = (failure.echo_of, "") if failure.echo else (failure.what, failure.kind)
        if key in by_kind:
            row, ranks = by_kind[key]
            if failure.rank is not None:
                ranks.append(failure.rank)
            row["ranks"], row["count"] = sorted(set(ranks)), int(str(row["count"])) + 1
            continue
        ranks = [failure.rank] if failure.rank is not None else []
        row = {
            "ranks": list(ranks), "says": failure.says, "at": failure.at, "seen_at": failure.seen_at, "where": failure.where, "echo": failure.echo,
            "echo_of": failure.echo_of, "count": 1,
        }  # fmt: skip
        by_kind[key] = (row, ranks)
        rows.append(row)
    return rows
