"""What the climb over ranks and rows came to: the grid, its smallest failing cell, what heals
it, and what one would try next by hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainprobe.facts import Facts, KnobTried, Plan, Rung
from trainprobe.facts.knobs import CONTROL
from trainprobe.model.diagnosis import Climb, ClimbCell, PlacedCause
from trainprobe.waits.grid import FAILING, command_cells, knobs_tried, smallest_failing, steady

# rows of the smallest failing over those of the largest passing cell: further apart than this, a
# size in between tells more
WIDE = 3.0
STEP = 10  # how much more data a person tries next, where nothing failed
ENDED = {"timed_out": "hung", "crashed": "crashed", "failed": "failed"}


def climb_of(facts: Facts, placed: Sequence[PlacedCause] = ()) -> Climb | None:
    """Return the climb; None where nobody asked for sizes of the command and nothing was changed in
    it.

    `placed` are the causes in their order: the first one's fix is what one tries next.
    """
    cells, tried = command_cells(facts), knobs_tried(facts)
    plan = facts.one(Plan) or Plan()
    if not cells or not (tried or plan.ranks or any(cell.rows is not None for cell in cells)):
        return None
    smallest = smallest_failing(facts)
    of_smallest = knobs_tried(facts, smallest.cell) if smallest is not None else ()
    healed = tuple(fact.knob for fact in of_smallest if fact.heals)
    still = tuple(fact.knob for fact in of_smallest if fact.answered and not fact.heals)
    runs = [rung for rung in facts.of(Rung) if rung.probe == cells[0].probe]
    always = steady(facts, smallest.cell) if smallest is not None else None
    return Climb(
        cells=(
            *(_cell(rung) for rung in cells),
            *(_knob(fact, facts) for fact in _all_knobs(facts)),
        ),
        smallest_failing=_cell(smallest) if smallest is not None else None,
        healed_by=healed,
        not_healed_by=still,
        steady=always,
        says=_says(facts, smallest, cells, healed, always),
        next=_next(facts, smallest, healed, still, placed),
        total_s=_total_s(runs),
        cells_s=round(sum(rung.took_s for rung in runs), 2),
    )


def size_says(ranks: int, rows: int | None) -> str:
    """Return `2 ranks x 1000 rows`, or `2 ranks` where the rows are not ours to set."""
    words = f"{ranks} {'rank' if ranks == 1 else 'ranks'}"
    return words if rows is None else f"{words} x {rows} {'row' if rows == 1 else 'rows'}"


def _all_knobs(facts: Facts) -> list[KnobTried]:
    control = {fact.of_cell: fact for fact in facts.of(KnobTried) if fact.name == CONTROL}
    return [*control.values(), *knobs_tried(facts)]


def _cell(rung: Rung) -> ClimbCell:
    outcome = rung.outcome if rung.outcome in (*FAILING, "passed", "skipped") else "not_measured"
    says = rung.skipped_because if outcome == "skipped" else rung.says
    return ClimbCell(
        rung.cell,
        rung.nproc,
        rung.rows,
        rung.knob,
        outcome,  # type: ignore[arg-type]
        round(rung.took_s, 2),
        None,
        says,
    )  # as above


def _knob(fact: KnobTried, facts: Facts) -> ClimbCell:
    rung = next(
        (rung for rung in facts.of(Rung, cell=fact.cell) if rung.knob),
        Rung(cell=fact.cell, knob=fact.knob, outcome=fact.outcome),
    )
    told = _cell(rung)
    return ClimbCell(
        told.cell,
        told.ranks,
        told.rows,
        fact.knob,
        told.outcome,
        told.took_s,
        fact.applied,
        fact.says or told.says,
    )


def _says(
    facts: Facts,
    smallest: Rung | None,
    cells: Sequence[Rung],
    healed: Sequence[str],
    always: bool | None,
) -> str:
    if smallest is None:
        return ""
    how = ENDED[smallest.outcome]
    near = [size_says(cell.nproc, cell.rows) for cell in _neighbours(smallest, cells)]
    beside = f"; {' and '.join(near)} {'pass' if len(near) > 1 else 'passes'}" if near else ""
    says = f"Smallest failing cell: {size_says(smallest.nproc, smallest.rows)} ({how}){beside}."
    if always is False:
        says += " It passes when it is run again, so it does not fail every time."
    tried = knobs_tried(facts, smallest.cell)
    if healed:
        says += f" {_listed(healed)} {'heals' if len(healed) == 1 else 'each heal'} it."
    elif any(fact.answered for fact in tried):
        says += f" None of {len([fact for fact in tried if fact.answered])} knobs heals it."
    return says


def _neighbours(smallest: Rung, cells: Sequence[Rung]) -> list[Rung]:
    """The cells that passed next to it: fewer ranks with the same rows, and the same ranks with
    fewer rows.
    """
    passed = [cell for cell in cells if cell.outcome == "passed"]
    fewer_ranks = [
        cell for cell in passed if cell.nproc < smallest.nproc and cell.rows == smallest.rows
    ]
    fewer_rows = [
        cell
        for cell in passed
        if cell.nproc == smallest.nproc and (cell.rows or 0) < (smallest.rows or 0)
    ]
    return [*fewer_ranks[-1:], *fewer_rows[-1:]]


def _next(
    facts: Facts,
    smallest: Rung | None,
    healed: Sequence[str],
    still: Sequence[str],
    placed: Sequence[PlacedCause],
) -> str:
    if smallest is None:
        return _larger(facts)
    here = size_says(smallest.nproc, smallest.rows)
    full = _largest(facts, smallest)
    onward = f", then {full}" if full != here else ""
    first = placed[0] if placed and placed[0].named else None
    if first is not None:
        instead = f" in place of {healed[0]}" if healed else ""
        return f"{here} again, with {first.id} cured (see `do` below){instead}{onward}"
    if healed:
        return f"{full} with {healed[0]}: does it hold there, and what does it cost?"
    between = _between(facts, smallest)
    if between is not None:
        return f"{size_says(smallest.nproc, between)}: from which size on does it fail?"
    if not still:
        return f"{here} with one thing changed at a time (--ablate, or --knob NAME=VALUE)"
    return f"{here} with a knob of your own (--knob NAME=VALUE), or with half of what the step does"


def _between(facts: Facts, smallest: Rung) -> int | None:
    """The size halfway, as factors go, between what passes and what fails on as many ranks."""
    passed = [
        cell.rows or 0
        for cell in command_cells(facts)
        if cell.outcome == "passed" and cell.nproc == smallest.nproc
    ]
    below = max((rows for rows in passed if rows < (smallest.rows or 0)), default=0)
    if not below or not smallest.rows or smallest.rows / below <= WIDE:
        return None
    return round(math.sqrt(below * smallest.rows))


def _largest(facts: Facts, smallest: Rung) -> str:
    """The largest cell of the grid, whether it was tried or not."""
    plan = facts.one(Plan) or Plan()
    cells = command_cells(facts)
    ranks = max([smallest.nproc, plan.nproc, *(cell.nproc for cell in cells)])
    rows = (
        max([*(cell.rows for cell in cells if cell.rows is not None), *plan.rows], default=0)
        if smallest.rows is not None
        else 0
    )
    return size_says(ranks, rows or None)


def _larger(facts: Facts) -> str:
    """Nothing failed: ten times the data, up to what the real run will have; or twice the ranks."""
    passed = [cell for cell in command_cells(facts) if cell.outcome == "passed"]
    if not passed:
        return ""
    planned = (facts.one(Plan) or Plan()).planned
    ranks, rows = max(cell.nproc for cell in passed), max((cell.rows or 0) for cell in passed)
    if rows and planned.get("rows", rows * STEP) > rows:
        return size_says(ranks, min(rows * STEP, planned.get("rows", rows * STEP)))
    if planned.get("ranks", 0) > ranks:
        return size_says(min(2 * ranks, planned["ranks"]), rows or None)
    return ""


def _total_s(runs: Sequence[Rung]) -> float:
    """From the first cell's start to the last one's end, of each time that the climb was taken
    up; seconds.
    """
    total = 0.0
    for time in sorted({rung.resumed for rung in runs}):
        spans = [
            (rung.began, rung.began + rung.took_s)
            for rung in runs
            if rung.resumed == time and rung.began is not None
        ]
        if spans:
            total += max(end for _, end in spans) - min(began for began, _ in spans)
    return round(total, 2)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
