"""The user's command over ranks and rows: which cells of the grid answered, which failing one is
the smallest, and which knobs were tried on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainprobe.facts import Facts, KnobTried, Rung
from trainprobe.facts.knobs import CONTROL

COMMAND = "user_script"
FAILING = ("failed", "timed_out", "crashed")
ANSWERED = (*FAILING, "passed")


def is_knob(rung: Rung) -> bool:
    """Is it a cell in which something was changed? It is neither a failure nor a pass of the
    command as it was given.
    """
    return bool(rung.knob)


def command_cells(facts: Facts) -> tuple[Rung, ...]:
    """One rung for each cell of the command as it was given, the cheapest first. Of a cell tried
    again the last answer counts.
    """
    cells: dict[str, Rung] = {}
    for rung in facts.of(Rung):
        if rung.probe == COMMAND and not is_knob(rung):
            before = cells.get(rung.cell)
            if before is None or rung.outcome in ANSWERED or before.outcome not in ANSWERED:
                cells[rung.cell] = rung
    return tuple(sorted(cells.values(), key=_size))


def outgrown_by(rung: Rung, others: Iterable[Rung]) -> bool:
    """Did the same rung pass with at least as many ranks and rows? A program may rightly refuse
    to run smaller than it is made for.
    """
    return any(
        other.outcome == "passed" and other.cell != rung.cell and _covers(other, rung)
        for other in others
    )


def failing_cells(facts: Facts) -> tuple[Rung, ...]:
    """The cells of the command that failed and that no larger one outgrows, smallest first."""
    cells = command_cells(facts)
    return tuple(rung for rung in cells if rung.outcome in FAILING and not outgrown_by(rung, cells))


def smallest_failing(facts: Facts) -> Rung | None:
    """The cheapest failing cell: by ranks times rows, then by ranks."""
    return next(iter(failing_cells(facts)), None)


def knobs_tried(facts: Facts, cell: str | None = None) -> tuple[KnobTried, ...]:
    """What was changed in that cell, or in any, one for each knob, in the order of the climb;
    the run without a change is not among them.
    """
    found: dict[tuple[str, str], KnobTried] = {}
    for fact in facts.of(KnobTried):
        if fact.name != CONTROL and cell in (None, fact.of_cell):
            found[fact.of_cell, fact.knob] = fact
    return tuple(found.values())


def steady(facts: Facts, cell: str) -> bool | None:
    """Did that cell fail once more when nothing was changed? None where that was not tried."""
    again = [
        fact
        for fact in facts.of(KnobTried)
        if fact.name == CONTROL and fact.of_cell == cell and fact.answered
    ]
    return not again[-1].heals if again else None


def passed_with_fewer_ranks(facts: Facts, rung: Rung) -> Rung | None:
    """The largest cell that passed on fewer ranks and with at least as many rows: what fails
    then needs the other ranks.
    """
    found = [
        one
        for one in command_cells(facts)
        if one.outcome == "passed" and one.nproc < rung.nproc and _rows(one) >= _rows(rung)
    ]
    return max(found, key=_size, default=None)


def passed_with_fewer_rows(facts: Facts, rung: Rung) -> Rung | None:
    """The cell with the most rows that passed on at least as many ranks and with fewer rows:
    what fails then needs the data's size.
    """
    found = [
        one
        for one in command_cells(facts)
        if one.outcome == "passed" and one.nproc >= rung.nproc and _rows(one) < _rows(rung)
    ]
    return max(found, key=lambda one: (_rows(one), -one.nproc), default=None)


def _size(rung: Rung) -> tuple[int, int, int]:
    return rung.nproc * max(1, _rows(rung)), rung.nproc, _rows(rung)


def _rows(rung: Rung) -> int:
    """Cells without rows have as many as each other."""
    return rung.rows or 0


def _covers(larger: Rung, smaller: Rung) -> bool:
    return larger.nproc >= smaller.nproc and _rows(larger) >= _rows(smaller)
