"""The deadlines of a cell, derived from the smaller cells that passed. Pure.

Without a smaller cell the settings hold. Otherwise each deadline is a multiple of what the smaller
cells needed, at least a floor, and at most a time that the user has set in trainprobe.yaml. Only
times that grow with the data are extrapolated, and only from two amounts of data on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainprobe.config import Settings
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.pace import Pace

FIRST_FLOOR_S = 15.0
STALL_FLOOR_S = 10.0
SILENT_FLOOR_S = 25.0
RUN_FLOOR_S = 30.0
LONGEST_S = 900.0
TIMES = 3.0  # a machine that somebody else uses too is easily twice as slow
NOISE_S = 0.5  # a difference of two starts below this is no growth
HIDDEN_S = 0.05  # the resolution of the watch: a growth below this is not seen
STEEPEST = 2.0  # up to n², whatever two measured points seem to say
DEFAULTS = Settings()


@dataclass(frozen=True)
class CellTiming:
    """The timing of a finished cell, in seconds since its start. `quiet_s` is its longest silence
    after its first sign of life; None means unknown.
    """

    cell: Cell
    took_s: float
    first_sign_s: float | None = None
    quiet_s: float | None = None


@dataclass(frozen=True)
class Deadlines:
    """`silent_s`: after this long without a sign of life a cell has failed although it computes;
    infinite without smaller cells. `sources` explains each value, by name.
    """

    first_output_s: float
    stall_s: float
    silent_s: float
    run_s: float
    sources: Mapping[str, str] = field(default_factory=dict)

    def row(self) -> dict[str, object]:
        """What the evidence of the cell says about them."""
        numbers = {
            "first_output_s": self.first_output_s,
            "stall_s": self.stall_s,
            "silent_s": self.silent_s,
            "run_s": self.run_s,
        }
        return {
            **{name: round(value, 1) for name, value in numbers.items() if math.isfinite(value)},
            "from": dict(self.sources),
        }

    def pace(self, pace: Pace) -> Pace:
        """The pace of a cell that runs to its own end under these deadlines."""
        return replace(
            pace,
            first_output_s=self.first_output_s,
            stall_s=self.stall_s,
            run_s=self.run_s,
            silent_s=self.silent_s,
            to_its_end=True,
        )


def deadlines(cell: Cell, timings: Sequence[CellTiming], settings: Settings) -> Deadlines:
    """The deadlines of `cell`, from what the cells that it dominates needed, the cell itself
    included (with another knob).
    """
    smaller = [item for item in timings if cell.dominates(item.cell)]
    firsts = [(item.cell, item.first_sign_s) for item in smaller if item.first_sign_s is not None]
    quiets = [(item.cell, item.quiet_s) for item in smaller if item.quiet_s is not None]
    if not firsts or not quiets:
        return _from_settings(settings)
    sources: dict[str, str] = {}
    first_s, first_from = _most(cell, firsts)
    quiet_s, quiet_from = _most(cell, quiets)
    first_output_s = _bounded(
        TIMES * first_s, FIRST_FLOOR_S, settings.first_output_s, DEFAULTS.first_output_s
    )
    sources["first_output_s"] = (
        f"{_times(TIMES)} the first sign of life, {first_s:.1f} s ({first_from})"
    )
    stall_s = _bounded(TIMES * quiet_s, STALL_FLOOR_S, settings.stall_s, DEFAULTS.stall_s)
    sources["stall_s"] = (
        f"{_times(TIMES)} the longest silence, {quiet_s:.1f} s ({quiet_from}), at least"
        f" {STALL_FLOOR_S:g} s"
    )
    # Silence may grow with the data (a map over all rows), and the first sign with it: the largest
    # that is foreseen, with room.
    silence_s, silence_law = _expected(cell, quiets)
    silent_s = max(2 * max(silence_s, quiet_s, first_s), SILENT_FLOOR_S, 2 * stall_s)
    sources["silent_s"] = (
        f"twice the silence to be expected here, {_seconds(silence_s)} ({silence_law})"
    )
    took_s, law = _expected(cell, [(item.cell, item.took_s) for item in smaller])
    # A cell that goes on gets what the settings give, and more where the smaller ones say that it
    # will need more.
    set_s = settings.run_s
    if set_s != DEFAULTS.run_s:
        run_s, sources["run_s"] = set_s, "the settings"
    else:
        run_s = min(LONGEST_S, max(set_s, TIMES * took_s)) if math.isfinite(took_s) else set_s
        sources["run_s"] = (
            f"at least {set_s:g} s, {_times(TIMES)} the time to be expected here,"
            f" {_seconds(took_s)} ({law})"
        )
    return Deadlines(first_output_s, stall_s, silent_s, run_s, sources)


def _from_settings(settings: Settings) -> Deadlines:
    says = "the settings; no smaller cell has passed"
    names = ("first_output_s", "stall_s", "run_s")
    return Deadlines(
        settings.first_output_s,
        settings.stall_s,
        math.inf,
        settings.run_s,
        dict.fromkeys(names, says),
    )


def _bounded(value_s: float, floor_s: float, set_s: float, default_s: float) -> float:
    """The derived value, at least the floor and at most a time that the user has set."""
    derived_s = max(floor_s, value_s)
    return min(derived_s, set_s) if set_s != default_s else derived_s


def _most(cell: Cell, values: Sequence[tuple[Cell, float]]) -> tuple[float, str]:
    """The largest value, in proportion to the ranks, which share the machine's cores; and where
    it is from.
    """
    scaled = [(value * _ranks_ratio(cell, entry), entry) for entry, value in values]
    value, item = max(scaled, key=lambda pair: pair[0])
    return value, f"from {_cell_text(item)}"


def _expected(cell: Cell, values: Sequence[tuple[Cell, float]]) -> tuple[float, str]:
    """What `cell` will need: the values by rows, carried on along the steepest law between
    linear and quadratic that the last two show.
    """
    if not values:
        return 0.0, "nothing is known"
    by_rows: dict[int, float] = {}
    for item, value in values:
        by_rows[item.rows or 0] = max(
            by_rows.get(item.rows or 0, 0.0), value * _ranks_ratio(cell, item)
        )
    points = sorted(by_rows.items())
    largest, last = points[-1]
    rows = cell.rows or 0
    if rows <= largest:
        return max(value for _, value in points), "as in the smaller cells"
    if len(points) < 2:
        return math.inf, f"not known from {largest} rows alone"
    smallest, start = points[0]
    grown = last - start
    if grown <= NOISE_S:
        # Within the noise of two starts: at least that much may be hidden in it, and grows in
        # proportion to the rows.
        return (
            last + max(grown, HIDDEN_S) * (rows - largest) / (largest - smallest),
            f"hardly any growth up to {largest} rows",
        )
    power = 1.0
    if len(points) > 2:
        middle, value = points[-2]
        if value - start > NOISE_S and middle > smallest:
            power = math.log(grown / (value - start)) / math.log(
                (largest - smallest) / (middle - smallest)
            )
            power = min(STEEPEST, max(1.0, power))
    return (
        start + grown * ((rows - smallest) / (largest - smallest)) ** power,
        f"growth up to {largest} rows, to the power {power:.1f}",
    )


def _ranks_ratio(cell: Cell, item: Cell) -> float:
    return max(1.0, cell.nproc / max(1, item.nproc))


def _seconds(value_s: float) -> str:
    return f"{value_s:.1f} s" if math.isfinite(value_s) else "nobody knows how long"


def _times(factor: float) -> str:
    return f"{factor:g} times"


def _cell_text(cell: Cell) -> str:
    ranks = f"{cell.nproc} rank{'' if cell.nproc == 1 else 's'}"
    return ranks if cell.rows is None else f"{ranks}, {cell.rows} rows"
