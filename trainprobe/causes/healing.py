"""What the climb tells about causes: which knob heals the smallest failing cell, and which sizes it
takes to fail.

A knob is an experiment: what passes once the workers are gone had to do with the workers. It rarely
tells one cause from its neighbours alone, so its points stand beside those of stacks and logs, and
a cause that shows nothing else of itself is only called possible by it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.causes.scene import Scene, weighing
from trainprobe.facts import Facts, KnobTried, Plan, Rung
from trainprobe.model.diagnosis import Weighing
from trainprobe.shipped import shipped
from trainprobe.waits.grid import (
    COMMAND,
    failing_cells,
    knobs_tried,
    passed_with_fewer_ranks,
    passed_with_fewer_rows,
    steady,
)

FROM_RANKS, FROM_ROWS = "only-from-ranks", "only-from-rows"
_WEAKER = {13: 6, 10: 3, 6: 3, 3: 3}
_ALLOWED = (3, 6, 10, 13)


@dataclass(frozen=True)
class Meaning:
    """`says` is the change in words; `heals` and `heals_not` hold (points, reason) by cause."""

    says: str
    heals: Mapping[str, tuple[int, str]]
    heals_not: Mapping[str, tuple[int, str]]


@functools.cache
def meanings() -> Mapping[str, Meaning]:
    """Return `healing.yaml`, by knob. Raises ValueError for wrong points or a missing reason."""
    data = shipped("trainprobe.causes", "healing.yaml")
    return {
        knob: Meaning(
            entry.get("says", ""),
            _points(knob, entry.get("heals")),
            _points(knob, entry.get("heals_not")),
        )
        for knob, entry in data.items()
    }


def healing(scene: Scene) -> dict[str, tuple[Weighing, ...]]:
    """Weighings by the id of a cause; none where the group is not one of the command's failing
    cells.

    Sizes tell something only where somebody chose them: one rank passes before most faults of
    several.
    """
    found: dict[str, list[Weighing]] = {}
    cells = _failing(scene)
    failed = cells.get(scene.cell)
    if failed is None:
        return {}
    plan = scene.facts.one(Plan)
    chosen = failed.rows is not None or (plan is not None and bool(plan.ranks))
    for cause_id, one in (
        *_knobs(scene.facts, cells),
        *(_sizes(scene.facts, failed) if chosen else ()),
    ):
        found.setdefault(cause_id, []).append(one)
    return {cause_id: tuple(weighings) for cause_id, weighings in found.items()}


def hinted(scene: Scene) -> dict[str, Weighing]:
    """The strongest weighing of each cause by healing knobs, without sizes, the likelier first."""
    best: dict[str, Weighing] = {}
    for cause_id, one in _knobs(scene.facts, _failing(scene)):
        if one.points > max(0, best[cause_id].points if cause_id in best else 0):
            best[cause_id] = one
    return dict(sorted(best.items(), key=lambda item: -item[1].points))


def _failing(scene: Scene) -> Mapping[str, Rung]:
    """The failing cells of the command by name, where the group belongs to one of them."""
    cells = (
        {rung.cell: rung for rung in failing_cells(scene.facts)}
        if scene.group.probe == COMMAND
        else {}
    )
    return cells if scene.cell in cells else {}


def _knobs(facts: Facts, cells: Mapping[str, Rung]) -> Iterator[tuple[str, Weighing]]:
    for tried in knobs_tried(facts):
        meaning, failed = meanings().get(tried.knob), cells.get(tried.of_cell)
        if meaning is None or failed is None or not tried.answered:
            continue
        if tried.heals:
            by_chance = steady(facts, failed.cell) is False
            doubt = ", but it also passed when nothing was changed" if by_chance else ""
            for cause_id, (points, because) in meaning.heals.items():
                says = f"{failed.cell} passes {meaning.says} ({tried.knob}): {because}{doubt}"
                yield cause_id, weighing(3 if by_chance else points, "probe-outcome", says, tried)
        elif tried.outcome == failed.outcome:
            # where it fails in another way, the first failure may be gone
            same = f"{failed.cell} fails in the same way {meaning.says} ({tried.knob})"
            for cause_id, (points, because) in meaning.heals_not.items():
                against = -_sure(points, tried)
                yield cause_id, weighing(against, "probe-outcome", f"{same}: {because}", tried)


def _sure(points: int, tried: KnobTried) -> int:
    """A knob that may not have taken effect speaks against a cause with less."""
    return points if tried.applied else _WEAKER[points]


def _sizes(facts: Facts, failed: Rung) -> Iterator[tuple[str, Weighing]]:
    fewer_ranks = passed_with_fewer_ranks(facts, failed)
    fewer_rows = passed_with_fewer_rows(facts, failed)
    for name, passed in ((FROM_RANKS, fewer_ranks), (FROM_ROWS, fewer_rows)):
        if passed is None:
            continue
        meaning = meanings()[name]
        for sign, causes in ((1, meaning.heals), (-1, meaning.heals_not)):
            for cause_id, (points, because) in causes.items():
                says = f"{failed.cell} fails and {passed.cell} passes: {because}"
                yield cause_id, weighing(sign * points, "probe-outcome", says, failed, passed)


def _points(knob: str, rows: Mapping[str, Any] | None) -> Mapping[str, tuple[int, str]]:
    found = {
        str(cause_id): (int(row["points"]), str(row["because"]))
        for cause_id, row in (rows or {}).items()
    }
    wrong = [
        cause_id
        for cause_id, (points, because) in found.items()
        if points not in _ALLOWED or not because
    ]
    if wrong:
        raise ValueError(
            f"healing.yaml, {knob}: {wrong[0]} needs points of {_ALLOWED} and a reason"
        )
    return found
