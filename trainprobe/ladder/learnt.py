"""The deadlines of a cell, learnt from the smaller cells that passed. Pure.

Nothing learnt: the settings hold. Otherwise each deadline is a multiple of what the smaller cells needed, never below a floor, and a time that
the user has set in trainprobe.yaml still bounds it. Only what grows with the data is extrapolated, and only once two amounts of data were seen.
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
class Seen:
    """One smaller cell that passed. Times in seconds since its start; `quiet_s` is its longest silence after its first sign of life.

    None is not known.
    """

    cell: Cell
    took_s: float
    first_sign_s: float | None = None
    quiet_s: float | None = None


@dataclass(frozen=True)
class Deadlines:
    """`silent_s`: after this long without a sign a cell has failed though it computes; infinite where nothing was learnt. `sources` says whence, by name."""

    first_output_s: float
    stall_s: float
    silent_s: float
    run_s: float
    sources: Mapping[str, str] = field(default_factory=dict)

    def row(self) -> dict[str, object]:
        """What the evidence of the cell says about them."""
        numbers = {"first_output_s": self.first_output_s, "stall_s": self.stall_s, "silent_s": self.silent_s, "run_s": self.run_s}
        return {**{name: round(value, 1) for name, value in numbers.items() if math.isfinite(value)}, "from": dict(self.sources)}

    def pace(self, pace: Pace) -> Pace:
        """The pace of a cell that runs to its own end under these deadlines."""
        return replace(pace, first_output_s=self.first_output_s, stall_s=self.stall_s, run_s=self.run_s, silent_s=self.silent_s, to_its_end=True)


def deadlines(cell: Cell, seen: Sequence[Seen], settings: Settings) -> Deadlines:
    """The deadlines of `cell`, from what the cells that it dominates needed, the cell itself included (with another knob)."""
    smaller = [one for one in seen if cell.dominates(one.cell)]
    firsts = [(one.cell, one.first_sign_s) for one in smaller if one.first_sign_s is not None]
    quiets = [(one.cell, one.quiet_s) for one in smaller if one.quiet_s is not None]
    if not firsts or not quiets:
        return _not_learnt(settings)
    sources: dict[str, str] = {}
    first_s, first_from = _most(cell, firsts)
    quiet_s, quiet_from = _most(cell, quiets)
    first_output_s = _bounded(TIMES * first_s, FIRST_FLOOR_S, settings.first_output_s, DEFAULTS.first_output_s)
    sources["first_output_s"] = f"{_times(TIMES)} the first sign of life, {first_s:.1f} s ({first_from})"
    stall_s = _bounded(TIMES * quiet_s, STALL_FLOOR_S, settings.stall_s, DEFAULTS.stall_s)
    sources["stall_s"] = f"{_times(TIMES)} the longest silence, {quiet_s:.1f} s ({quiet_from}), at least {STALL_FLOOR_S:g} s"
    # Silence may grow with the data (a map over all rows), and the first sign with it: the largest that is foreseen, with room.
    silence_s, silence_law = _foreseen(cell, quiets)
    silent_s = max(2 * max(silence_s, quiet_s, first_s), SILENT_FLOOR_S, 2 * stall_s)
    sources["silent_s"] = f"twice the silence to be expected here, {_seconds(silence_s)} ({silence_law})"
    took_s, law = _foreseen(cell, [(one.cell, one.took_s) for one in smaller])
    # A cell that goes on gets what the settings give, and more where the smaller ones say that it will need more.
    given = settings.run_s
    if given != DEFAULTS.run_s:
        run_s, sources["run_s"] = given, "the settings"
    else:
        run_s = min(LONGEST_S, max(given, TIMES * took_s)) if math.isfinite(took_s) else given
        sources["run_s"] = f"at least {given:g} s, {_times(TIMES)} the time to be expected here, {_seconds(took_s)} ({law})"
    return Deadlines(first_output_s, stall_s, silent_s, run_s, sources)


def _not_learnt(settings: Settings) -> Deadlines:
    says = "the settings; no smaller cell has passed"
    names = ("first_output_s", "stall_s", "run_s")
    return Deadlines(settings.first_output_s, settings.stall_s, math.inf, settings.run_s, dict.fromkeys(names, says))


def _bounded(value_s: float, floor_s: float, given_s: float, default_s: float) -> float:
    """What was learnt, at least the floor; a time that the user has set is never exceeded."""
    learnt = max(floor_s, value_s)
    return min(learnt, given_s) if given_s != default_s else learnt


def _most(cell: Cell, values: Sequence[tuple[Cell, float]]) -> tuple[float, str]:
    """The largest value, in proportion to the ranks, which share the machine's cores; and where it is from."""
    scaled = [(value * _ranks_ratio(cell, one), one) for one, value in values]
    value, one = max(scaled, key=lambda pair: pair[0])
    return value, f"from {_shown(one)}"


def _foreseen(cell: Cell, values: Sequence[tuple[Cell, float]]) -> tuple[float, str]:
    """What `cell` will need: the values by rows, carried on along the steepest law between linear and quadratic that the last two show."""
    if not values:
        return 0.0, "nothing is known"
    by_rows: dict[int, float] = {}
    for one, value in values:
        by_rows[one.rows or 0] = max(by_rows.get(one.rows or 0, 0.0), value * _ranks_ratio(cell, one))
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
        # Within the noise of two starts: at least that much may be hidden in it, and grows in proportion to the rows.
        return last + max(grown, HIDDEN_S) * (rows - largest) / (largest - smallest), f"hardly any growth up to {largest} rows"
    power = 1.0
    if len(points) > 2:
        middle, value = points[-2]
        if value - start > NOISE_S and middle > smallest:
            power = math.log(grown / (value - start)) / math.log((largest - smallest) / (middle - smallest))
            power = min(STEEPEST, max(1.0, power))
    return start + grown * ((rows - smallest) / (largest - smallest)) ** power, f"growth up to {largest} rows, to the power {power:.1f}"


def _ranks_ratio(cell: Cell, one: Cell) -> float:
    return max(1.0, cell.nproc / max(1, one.nproc))


def _seconds(value_s: float) -> str:
    return f"{value_s:.1f} s" if math.isfinite(value_s) else "nobody knows how long"


def _times(factor: float) -> str:
    return f"{factor:g} times"


def _shown(cell: Cell) -> str:
    ranks = f"{cell.nproc} rank{'' if cell.nproc == 1 else 's'}"
    return ranks if cell.rows is None else f"{ranks}, {cell.rows} rows"
