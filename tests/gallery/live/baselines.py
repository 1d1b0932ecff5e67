"""Simple rules that a person could follow instead, on the same evidence. Each names ranks, none
names a cause.

- `minority stack`: the ranks of the smallest class of main-thread stacks that agree frame by frame
  (ByteRobust's rule); nobody where two are smallest.
- `lowest sequence`: the ranks whose last recorded collective is furthest behind, where a recorder's
  dump is there.
- `longest wait`: the rank that has waited longest, which is the first one to time out.
- `torchfrtrace`: PyTorch's analyzer on the same dumps, where there are any (filled in by the live
  run).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from trainprobe.model.evidence import Evidence


def guesses(records: Iterable[Evidence], report: Mapping[str, Any]) -> dict[str, list[int] | None]:
    """Ranks by baseline; None where the baseline had nothing to go by, `[]` where it names
    nobody.
    """
    kept = list(records)
    return {
        "minority stack": minority_stack(kept),
        "lowest sequence": lowest_sequence(kept),
        "longest wait": longest_wait(report),
    }


def minority_stack(records: Iterable[Evidence]) -> list[int] | None:
    stacks: dict[int, tuple[str, ...]] = {}
    for record in records:
        if (
            record.kind != "stacks.python"
            or record.subject.rank is None
            or record.subject.rank in stacks
        ):
            continue
        threads = record.data.get("threads") or []
        main = next((thread for thread in threads if thread.get("name") == "MainThread"), None)
        if main is not None:
            stacks[record.subject.rank] = tuple(
                f"{frame.get('name')}:{frame.get('line')}" for frame in main.get("frames") or []
            )
    if len(stacks) < 2:
        return None
    classes: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for rank, stack in stacks.items():
        classes[stack].append(rank)
    ordered = sorted(classes.values(), key=len)
    return sorted(ordered[0]) if len(ordered) > 1 and len(ordered[0]) < len(ordered[1]) else []


def lowest_sequence(records: Iterable[Evidence]) -> list[int] | None:
    last: dict[int, int] = {}
    for record in records:
        rank = record.data.get("rank")
        if record.kind == "flight_recorder" and isinstance(rank, int):
            last[rank] = max(
                (entry.get("seq") or 0 for entry in record.data.get("entries") or []), default=0
            )
    if len(last) < 2:
        return None
    lowest = min(last.values())
    return (
        sorted(rank for rank, value in last.items() if value == lowest)
        if lowest < max(last.values())
        else []
    )


def longest_wait(report: Mapping[str, Any]) -> list[int] | None:
    rows = report["world"].get("ranks") or [] if isinstance(report["world"], dict) else []
    rows = [row for row in rows if isinstance(row, dict)]
    since = {
        row["rank"]: row["since_s"]
        for row in rows
        if row["state"] == "waiting" and row.get("since_s") is not None
    }
    return [max(since, key=lambda rank: since[rank])] if since else None
