"""From the settings that were measured to the planned ones: how a number over all processes grows
with ranks and workers.

Rows are a matter of laws (`trainprobe.scaling`). Ranks and workers are few and each adds the like
of the others, so a straight line is drawn: through what was measured with different numbers of
them, at the planned rows where there are laws for it, else at the largest rows that were measured
with both.
Where only one number was measured, each further one is taken to need as much as these: shared pages
make that an upper bound, and the basis says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainprobe.waits.measured_series import Series, Setting

ASSUMED = 1.25
"""A factor that was not measured may be too high by so much before a limit is announced on it."""
_PLAIN = ("", "none")


@dataclass(frozen=True)
class Times:
    """A factor, where it comes from, and whether it was measured."""

    factor: float = 1.0
    basis: str = ""
    assumed: bool = False


def for_workers(
    chosen: Setting,
    planned: int | None,
    at_plan: Mapping[Setting, float],
    series: Sequence[Series],
    *,
    sums: bool,
) -> Times:
    """The factor from `chosen` to `planned` workers. `at_plan` holds the values at the planned
    rows by setting.
    """
    if planned is None or chosen.workers is None or planned == chosen.workers:
        return Times()
    size = _common(series, chosen)
    here = [
        one for one in series if _alike(one.setting, chosen) and one.setting.ranks == chosen.ranks
    ]
    seen = {
        one.setting.workers: value
        for one in here
        if one.setting.workers is not None and (value := one.at(size)) is not None
    }
    values = {
        one.workers: value
        for one, value in at_plan.items()
        if _alike(one, chosen) and one.ranks == chosen.ranks and one.workers is not None
    }
    if len(values) > 1:  # with more rows a worker takes no less than it took with fewer
        return Times(_line(values, chosen.workers, planned, _slope(seen)))
    if len(seen) > 1:
        return Times(
            _line(seen, chosen.workers, planned),
            f"workers by what {_counts(seen, 'workers')} took at {size:g} rows",
        )
    if not sums:
        return Times()
    factor = (1 + planned) / (1 + chosen.workers)
    return Times(
        factor,
        f"only {chosen.workers} workers were measured, and each process is taken to need as much as"
        " these",
        assumed=True,
    )


def for_ranks(chosen: Setting, planned: int | None, series: Sequence[Series]) -> Times:
    """The factor from `chosen` to `planned` ranks, for numbers that are sums over all ranks."""
    if not planned or planned == chosen.ranks:
        return Times()
    best: dict[int, float] = {}
    for setting in sorted(
        {one.setting for one in series},
        key=lambda one: (one.workers != chosen.workers, -(one.workers or 0)),
    ):
        alike = [
            one
            for one in series
            if one.setting.workers == setting.workers and _alike(one.setting, setting)
        ]
        size = max(
            (
                point.size
                for one in alike
                if one.setting.ranks != chosen.ranks
                for point in one.points
            ),
            default=0.0,
        )
        values = {one.setting.ranks: value for one in alike if (value := one.at(size)) is not None}
        if chosen.ranks in values and len(values) > 1:
            best = values
            break
    if best:
        return Times(
            _line(best, chosen.ranks, planned),
            "" if planned in best else f"ranks by what {_counts(best, 'ranks')} took",
        )
    return Times(
        planned / chosen.ranks,
        f"only {chosen.ranks} {'rank was' if chosen.ranks == 1 else 'ranks were'} measured, and"
        " each is taken to need as much",
        assumed=True,
    )


def _alike(one: Setting, other: Setting) -> bool:
    """No workers have no start method, and go with any."""
    return (
        one.method == other.method or one.workers == 0 or other.workers == 0 or one.method in _PLAIN
    )


def _common(series: Sequence[Series], chosen: Setting) -> float:
    """The largest size that this setting and another number of workers were measured at."""
    own = {point.size for one in series if one.setting == chosen for point in one.points}
    other = {
        point.size
        for one in series
        if one.setting.workers != chosen.workers and one.setting.ranks == chosen.ranks
        for point in one.points
    }
    return max(own & other, default=0.0)


def _line(values: Mapping[int, float], known: int, planned: int, least: float = 0.0) -> float:
    """The factor along the straight line through the fewest and the most, as steep as `least` at
    least; what is measured is taken as it is.
    """
    if planned in values:
        return values[planned] / values[known]
    slope = max(_slope(values), least)
    near = min(values, key=lambda one: abs(one - planned))
    return max(values[near] + slope * (planned - near), 0.0) / values[known]


def _slope(values: Mapping[int, float]) -> float:
    """What each further one takes, from the fewest to the most; 0 where it is not known."""
    few, most = min(values, default=0), max(values, default=0)
    return max(0.0, (values[most] - values[few]) / (most - few)) if most > few else 0.0


def _counts(values: Mapping[int, float], what: str) -> str:
    numbers = [str(one) for one in sorted(values)]
    return f"{', '.join(numbers[:-1])} and {numbers[-1]} {what}"
