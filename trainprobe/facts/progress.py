"""How far a rank came, by its own witness and by what it printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.frame_rows import frame_of
from trainprobe.facts.log_events import Output, whole_text
from trainprobe.facts.probe_results import events_of, is_witness, moment
from trainprobe.facts.steps import steps_printed
from trainprobe.logtext.streams import split_ranks
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class Progress(Fact):
    """`output_steps` is the largest step number printed, None when none was seen. `silent_s` is how
    long it has printed nothing.

    `loader_empty` is True when a DataLoader gave no batch at all. `exited_by_itself` is True when
    the interpreter came to its normal end. `loader_batches` are the lengths of its first
    DataLoaders, in the order in which they began. `exit_code` is what the program asked for, None
    where nobody told one. `left_how` is sys.exit or os._exit where one of them was called,
    `left_at` the line that called it. `witness` says whether the process was watched at all:
    without it the counts are None, which is not zero.
    """

    pid: int | None = None
    optimizer_steps: int | None = None
    batches: int | None = None
    backward_calls: int | None = None
    output_steps: int | None = None
    loader_empty: bool | None = None
    dataset_len: int | None = None
    first_output_s: float | None = None
    silent_s: float | None = None
    exited_by_itself: bool | None = None
    exit_at: float | None = None
    torch_imported: bool | None = None
    world_size: int | None = None
    witness: bool = False
    exit_code: int | None = None
    left_how: str = ""
    left_at: Frame | None = None
    loader_batches: tuple[int, ...] = ()


def parse_witness_progress(record: Evidence) -> list[Fact]:
    """What the witness counted, one progress per process."""
    if record.subject.role == "launcher":
        return []  # the launcher takes no steps, and its zero must not be read as the ranks'
    by_pid: dict[int | None, dict[str, Any]] = {}
    pid = record.subject.pid
    for event in events_of(record):
        if not is_witness(event):
            continue
        if _whole(event, "pid") is not None:
            pid = _whole(event, "pid")
        seen = by_pid.setdefault(pid, {})
        if event["event"] == "note":
            _count(event, seen)
        elif event.get("thread") in (None, "", "MainThread"):
            seen["raised"] = True
    found: list[Fact] = []
    for of_pid, seen in by_pid.items():
        raised = seen.pop("raised", False)
        exit_at = seen.get("exit_at")
        by_itself = (
            (exit_at is not None and not raised and not seen.get("exit_code"))
            if (exit_at is not None or raised)
            else None
        )
        found.append(
            Progress(
                (record.id,),
                record.cell,
                record.subject.rank,
                pid=of_pid,
                witness=True,
                exited_by_itself=by_itself,
                **seen,
            )
        )
    return found


def _count(event: Mapping[str, Any], seen: dict[str, Any]) -> None:
    for name in ("optimizer_steps", "batches", "backward_calls", "dataset_len", "world_size"):
        value = _whole(event, name)
        if value is not None and (
            name in ("dataset_len", "world_size") or value >= (seen.get(name) or 0)
        ):
            seen[name] = value
    length = _whole(event, "loader_batches")
    if length is not None:
        seen["loader_batches"] = (*seen.get("loader_batches", ()), length)[:8]
    if event.get("name") == "loader.empty":
        seen.setdefault("loader_empty", True)
    elif event.get("name") == "loader.first_batch":
        seen["loader_empty"] = False
    elif event.get("name") == "leave":
        _left(event, seen)
    elif event.get("name") == "exit":
        seen["exit_at"] = moment(event)
        seen["exit_code"] = _whole(event, "code")
        if isinstance(event.get("torch_imported"), bool):
            seen["torch_imported"] = event["torch_imported"]


def _left(event: Mapping[str, Any], seen: dict[str, Any]) -> None:
    """sys.exit may still be caught; os._exit is the end, and no `exit` follows it."""
    how = event.get("how")
    seen["left_how"] = how[:60] if isinstance(how, str) else ""
    where = event.get("where")
    if isinstance(where, Mapping):
        seen["left_at"] = frame_of(where)
    if seen["left_how"] == "os._exit":
        seen["exit_at"], seen["exit_code"] = moment(event), _whole(event, "code")


def _whole(event: Mapping[str, Any], name: str) -> int | None:
    value = event.get(name)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < fields.NUMBER_CAP
        else None
    )


def parse_printed_progress(record: Evidence) -> list[Fact]:
    """Steps in output; those of a launcher belong to the ranks that its prefixes name, the rest
    to no rank.
    """
    found: list[Fact] = []
    for rank, lines in split_ranks(whole_text(record), shared=record.subject.rank is None).items():
        steps = steps_printed("\n".join(lines))
        if steps is not None:
            found.append(
                Progress(
                    (record.id,),
                    record.cell,
                    record.subject.rank if rank is None else rank,
                    output_steps=steps,
                )
            )
    return found


def join_progress(facts: list[Fact]) -> list[Fact]:
    """One progress per cell and rank: the witness's counts, what was printed, and since when
    nothing was.
    """
    by_rank: dict[tuple[str, int | None], list[Progress]] = {}
    for fact in facts:
        if isinstance(fact, Progress):
            by_rank.setdefault((fact.cell, fact.rank), []).append(fact)
    outputs = [fact for fact in facts if isinstance(fact, Output) and fact.rank is not None]
    endings = {
        (fact.cell, fact.rank): fact
        for fact in facts
        if isinstance(fact, RankEnding) and fact.role == "rank"
    }
    for output in outputs:
        by_rank.setdefault((output.cell, output.rank), [])
    joined: list[Fact] = []
    for (cell, rank), parts in by_rank.items():
        mine = [output for output in outputs if output.cell == cell and output.rank == rank]
        joined.append(_timed(_joined(cell, rank, parts), mine, endings.get((cell, rank))))
    return [fact for fact in facts if not isinstance(fact, Progress)] + joined


def _joined(cell: str, rank: int | None, parts: list[Progress]) -> Progress:
    # A rank may have children with a witness of their own; the one that did most is the one that
    # trains.
    watched = sorted(
        (part for part in parts if part.witness),
        key=lambda part: (
            (part.optimizer_steps or 0),
            (part.batches or 0),
            bool(part.torch_imported),
        ),
    )
    first = watched[-1] if watched else Progress(cell=cell, rank=rank)
    printed = [part.output_steps for part in parts if part.output_steps is not None]
    evidence = tuple(dict.fromkeys(id_ for part in parts for id_ in part.evidence))
    return replace(first, evidence=evidence, output_steps=max(printed, default=None))


def _timed(progress: Progress, outputs: list[Output], ending: RankEnding | None) -> Progress:
    firsts = [output.first_at for output in outputs if output.first_at is not None]
    lasts = [output.last_at for output in outputs if output.last_at is not None]
    if ending is None:
        return progress
    first_s = min(firsts) - ending.started_at if firsts and ending.started_at is not None else None
    silent_since = max(lasts) if lasts else ending.started_at
    silent_s = (
        ending.at - silent_since
        if ending.at is not None and silent_since is not None and outputs
        else None
    )
    return replace(
        progress,
        first_output_s=max(0.0, first_s) if first_s is not None else None,
        silent_s=max(0.0, silent_s) if silent_s is not None else None,
    )
