"""Spells of a sampled main thread, told apart by one question about where it stood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trainprobe.stacks.frames import Frame

Spells = Sequence[tuple[float, float, bool]]
"""(from, to, the answer), in seconds and in order."""
Asks = Callable[[Sequence[Frame]], bool]
Taken = Mapping[int, Mapping[str, Any]]
"""By rank, the data of a record of samples that this program has written itself."""


def share(spells: Spells) -> float:
    """The share of the time with the answer yes."""
    all_s = sum(end - start for start, end, _ in spells)
    return sum(end - start for start, end, yes in spells if yes) / all_s if all_s > 0 else 0.0


def by_rank(taken: Iterable[Taken], asks: Asks) -> list[Spells]:
    """The spells of each rank over several spans of sampling, one behind the other."""
    found: dict[int, list[tuple[float, float, bool]]] = {}
    for span in taken:
        for rank, data in span.items():
            answers = [asks(frames) for frames in frames_of(data)]
            found.setdefault(rank, []).extend(
                (start, end, answers[stack]) for start, end, stack in data["spells"]
            )
    return list(found.values())


def all_stacks(taken: Iterable[Taken]) -> list[list[Frame]]:
    """Every stack of all ranks over several spans."""
    return [stack for span in taken for data in span.values() for stack in frames_of(data)]


def frames_of(data: Mapping[str, Any]) -> list[list[Frame]]:
    """The stacks of such a record, each outermost first."""
    return [
        [Frame(row["name"], row["file"], row["line"]) for row in reversed(stack)]
        for stack in data["stacks"]
    ]
