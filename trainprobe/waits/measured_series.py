"""Measurements in series: one number over growing rows, for each number of ranks and workers
that it was measured with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trainprobe.facts import Facts, Measured, Plan
from trainprobe.facts.cell_measures import COMMAND
from trainprobe.scaling import Point

DATA = "scaled_dataset"
PROBES = (COMMAND, DATA)
STARTUP = "start-up"
_UNITS = {"B": "bytes"}  # one name for one unit
_MOST = 1e18  # an exabyte, or a count of anything
TIME = "took_s"
_BRIEF_S = 0.001  # a pass of less tells of the clock and of what was read ahead, not of the data
_PARTS = ("first_batch_s", "startup_s")  # what comes after the building, by the name that is there


@dataclass(frozen=True, order=True)
class Setting:
    """What a series was measured with. `workers` None means that the command has its own."""

    ranks: int = 1
    workers: int | None = None
    method: str = ""


@dataclass(frozen=True)
class Series:
    """The largest value of any rank at each size, smallest size first; `axis` is rows or ranks.

    `at_least` are sizes that did not end in their time, with how long they had taken by then.
    """

    probe: str
    name: str
    unit: str
    axis: str
    setting: Setting
    points: tuple[Point, ...]
    facts: tuple[Measured, ...]
    at_least: tuple[Point, ...] = ()

    @property
    def largest(self) -> Point:
        return self.points[-1]

    def at(self, size: float) -> float | None:
        """What was measured at exactly this size."""
        return next((point.value for point in self.points if point.size == size), None)


def series_of(facts: Facts, probe: str, name: str) -> tuple[Series, ...]:
    """All series of this number of the user's command or of the user's data; none of the data
    that the rung makes itself.
    """
    plan = facts.one(Plan)
    if probe == DATA and (plan is None or not plan.dataset):
        return ()
    own = [
        fact for fact in facts.of(Measured) if fact.probe == probe and not fact.labels.get("knob")
    ]
    if name == STARTUP:
        return (
            _startup(own)
            if probe == DATA
            else tuple(_renamed(one, STARTUP) for one in by_setting(own, "first_step_s"))
        )
    found = by_setting(own, name)
    return found or (_over_ranks(own, name) if probe == COMMAND else ())


def by_setting(own: Iterable[Measured], name: str) -> tuple[Series, ...]:
    """One series for each setting; of several ranks, epochs or tries at one size the largest
    value counts.
    """
    best: dict[Setting, dict[int, Measured]] = defaultdict(dict)
    bounds: dict[Setting, dict[int, Measured]] = defaultdict(dict)
    for fact in own:
        rows = _whole(fact.labels, "rows")
        if (
            fact.name == name
            and rows
            and _sane(rows, fact.value)
            and (name != TIME or fact.value >= _BRIEF_S)
        ):
            at = (bounds if fact.labels.get("at_least") is True else best)[_setting(fact)]
            if rows not in at or fact.value > at[rows].value:
                at[rows] = fact
    ordered = sorted(best.items(), key=lambda one: _order(one[0]))
    return tuple(
        replace(_series(setting, "rows", at), at_least=_points(bounds[setting]))
        for setting, at in ordered
    )


def _over_ranks(own: Iterable[Measured], name: str) -> tuple[Series, ...]:
    """Where the command was given no rows, its numbers over the ranks."""
    at: dict[int, Measured] = {}
    for fact in own:
        ranks = _whole(fact.labels, "ranks")
        if (
            fact.name == name
            and ranks
            and _whole(fact.labels, "rows") is None
            and _sane(ranks, fact.value)
            and (ranks not in at or fact.value > at[ranks].value)
        ):
            at[ranks] = fact
    return (_series(Setting(max(at)), "ranks", at),) if at else ()


def _startup(own: list[Measured]) -> tuple[Series, ...]:
    """Building the data, and then the workers' start until the first batch. A factory that takes
    no number of rows builds all, once.
    """
    after = next((found for name in _PARTS if (found := by_setting(own, name))), ())
    built = by_setting(own, "build_s")
    summed = []
    for one in after:
        build = min(
            built, key=lambda other: abs(other.setting.ranks - one.setting.ranks), default=None
        )
        if build is None:
            return ()
        whole = build.largest.value if len(build.points) == 1 else None
        values = [
            (point, whole if whole is not None else build.at(point.size)) for point in one.points
        ]
        points = tuple(
            Point(point.size, point.value + more) for point, more in values if more is not None
        )
        if points:
            facts = (*one.facts, *build.facts)
            summed.append(
                Series(one.probe, STARTUP, "s", "rows", one.setting, points, facts, build.at_least)
            )
    return tuple(summed)


def _series(setting: Setting, axis: str, at: Mapping[int, Measured]) -> Series:
    facts = tuple(at[size] for size in sorted(at))
    return Series(
        facts[0].probe,
        facts[0].name,
        _UNITS.get(facts[0].unit, facts[0].unit),
        axis,
        setting,
        _points(at),
        facts,
    )


def _points(at: Mapping[int, Measured]) -> tuple[Point, ...]:
    return tuple(Point(float(size), at[size].value) for size in sorted(at))


def _renamed(one: Series, name: str) -> Series:
    return Series(one.probe, name, one.unit, one.axis, one.setting, one.points, one.facts)


def _setting(fact: Measured) -> Setting:
    method = fact.labels.get("method")
    return Setting(
        _whole(fact.labels, "ranks") or 1,
        _whole(fact.labels, "workers"),
        method if isinstance(method, str) else "",
    )


def _sane(size: int, value: float) -> bool:
    """A number that some machine can have; nan and infinity are none."""
    return size <= _MOST and 0 < value <= _MOST


def _order(setting: Setting) -> tuple[int, int, str]:
    return setting.ranks, -1 if setting.workers is None else setting.workers, setting.method


def _whole(labels: Mapping[str, object], name: str) -> int | None:
    value = labels.get(name)
    return (
        int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
        else None
    )
