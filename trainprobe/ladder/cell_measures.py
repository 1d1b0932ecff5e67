"""The numbers of one cell of the user's command, as rows of its evidence: times and steps of the
ranks, and what its processes used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from trainprobe.ladder.cells import Cell
from trainprobe.ladder.resource_use import EVERY_S, SAMPLED, row
from trainprobe.ladder.watch import Watch


def of_cell(watch: Watch, cell: Cell, took_s: float) -> dict[str, Any]:
    """The data of `cell.measures`. `first_step_s` and `step_s` are of the rank that was last and
    slowest; what was not seen is absent.
    """
    labels: dict[str, Any] = {
        "ranks": cell.nproc,
        **({} if cell.rows is None else {"rows": cell.rows}),
        **({"knob": cell.knob} if cell.knob else {}),
    }
    marks = [each.marks for each in watch.signs.by_pid.values() if each.marks]
    pauses = [pause for of_rank in marks if (pause := step_s(of_rank)) is not None]
    steps = max((each.steps for each in watch.signs.by_pid.values()), default=0)
    output_at = watch.signs.first_output_at
    first_step_at = max((of_rank[0][0] for of_rank in marks), default=0.0)
    rows = [row("took_s", round(took_s, 3), "s", "start to end", **labels)]
    if output_at:
        rows.append(row("first_output_s", _since(watch, output_at), "s", "its output", **labels))
    if marks:
        at_s = _since(watch, first_step_at)
        rows.append(row("first_step_s", at_s, "s", "the witness", **labels))
    if pauses:
        rows.append(row("step_s", round(max(pauses), 4), "s", "the witness, median", **labels))
    if steps:
        rows.append(row("steps", float(steps), "", "the witness", **labels))
    rows += [
        row(name, value, unit, SAMPLED, **labels)
        for name, (value, unit) in watch.use.values().items()
    ]
    return {"measures": rows, "samples": watch.use.samples, "sampled_every_s": EVERY_S}


def of_limits(found: Mapping[str, tuple[float, str, str]]) -> dict[str, Any]:
    """The data of the `cell.measures` of the whole climb."""
    return {
        "measures": [
            row(name, value, unit, source) for name, (value, unit, source) in found.items()
        ]
    }


def step_s(marks: Sequence[tuple[float, int]]) -> float | None:
    """The median time of a step, from (moment, steps so far): the witness tells the first three
    steps, then at most one a second.
    """
    spans = sorted(
        ((after - before) / (more - steps), more - steps)
        for (before, steps), (after, more) in pairwise(marks)
        if more > steps
    )
    half = sum(count for _, count in spans) / 2
    for pause, count in spans:
        half -= count
        if half <= 0:
            return max(0.0, pause)
    return None


def _since(watch: Watch, at: float) -> float:
    return round(max(0.0, at - watch.began_at), 3)
