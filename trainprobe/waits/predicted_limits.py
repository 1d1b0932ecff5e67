"""What the planned size will do, from the sizes that were measured, and which limit of this node
it will meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trainprobe.facts import Facts, Measured, Plan
from trainprobe.facts.cell_measures import COMMAND
from trainprobe.model.predictions import Prediction
from trainprobe.scaling import (
    ANNOUNCED,
    IN_WORDS,
    Fit,
    TooFewError,
    crossing,
    exponent,
    fit,
    interval,
    least_chance,
    share_above,
    steep,
    unmoved,
)
from trainprobe.scaling.wording import amount, number, sizes, span
from trainprobe.waits import bounds
from trainprobe.waits.extrapolation import ASSUMED, Times, for_ranks, for_workers
from trainprobe.waits.measured_series import DATA, PROBES, STARTUP, TIME, Series, Setting, series_of
from trainprobe.waits.suspects import SuspectGroup

LONG_S = 600.0  # an epoch that takes less hurts nobody, whatever its law
TELLING_S = 1.0  # a time of less tells of the machine, and of no law that is steep
FASTER = 3.0  # times what growth in step would have given
# an interval whose ends are further apart, in times, says that the measured sizes do not tell
OPEN = 20.0
# of times of a whole command: it starts processes and reads what the last one has left in the
# caches, or not
START_NOISE = 0.2
FURTHER = 2.0  # times the largest size of another setting
_NEARLY = 0.95  # of the planned size: that is as good as measured
_CURVE = 9
_MOST_WORKERS = 64


@dataclass(frozen=True)
class Quantity:
    """A number that is predicted.

    `sums` is true where it is counted over all ranks and workers, `counts` where it is a number of
    whole things; `noise` is how much it scatters, relative.
    """

    name: str
    says: str
    noise: float
    bound: Callable[[Facts], bounds.Bound | None]
    sums: bool = False
    with_workers: bool = True
    counts: bool = False


def _no_bound(facts: Facts) -> bounds.Bound | None:
    del facts
    return None


# Scatter between runs of one program: memory by what the allocator keeps, counts by a thread or a
# file more or less, times by everything.
QUANTITIES = (
    Quantity("pss", "memory", 0.02, bounds.memory, sums=True),
    Quantity("fds", "descriptors of one process", 0.02, bounds.descriptors, counts=True),
    Quantity("pids", "processes and threads", 0.02, bounds.processes, sums=True, counts=True),
    Quantity("shm", "shared memory", 0.05, bounds.shared_memory, sums=True),
    Quantity(STARTUP, "start-up", 0.1, bounds.group_timeout, with_workers=False),
    Quantity(TIME, "one pass", 0.1, _no_bound, with_workers=False),
)


@dataclass(frozen=True)
class Wanted:
    """The planned size; None where nobody said it and nothing shows it."""

    rows: int | None
    ranks: int | None
    workers: int | None


def wanted(facts: Facts) -> Wanted:
    """What was planned; else the whole data, the ranks that were asked for, and the workers of
    each series.
    """
    plan = facts.one(Plan) or Plan()
    full = max(
        (fact.value for fact in facts.of(Measured) if fact.name == "dataset.full_rows"), default=0.0
    )
    return Wanted(
        plan.planned.get("rows") or int(full) or None,
        plan.planned.get("ranks") or plan.nproc or None,
        plan.planned.get("workers"),
    )


def predictions(facts: Facts) -> tuple[Prediction, ...]:
    """One prediction for each number of the user's command and of the user's data that was measured
    at several sizes.

    What was measured at the planned size itself is none, unless it is beyond a limit.
    """
    want = wanted(facts)
    found = [
        _predicted(facts, probe, quantity, want) for quantity in QUANTITIES for probe in PROBES
    ]
    return tuple(
        one for one in found if one is not None and (one.law != "measured" or one.will_hit)
    )


def foreseen_groups(facts: Facts, found: Sequence[Prediction]) -> tuple[SuspectGroup, ...]:
    """One group for each limit that will be met, and one for time that grows faster than the
    data; what the command itself showed goes first.
    """
    first: dict[str, Prediction] = {}
    for one in found:
        if one.will_hit:
            first.setdefault(one.limit_name or TIME, one)
    if any(one.steep for name, one in first.items() if name == "group.timeout_s"):
        first.pop(TIME, None)  # the same illness twice
    plan = facts.one(Plan) or Plan()
    return tuple(
        SuspectGroup(
            cell=one.cell,
            probe=one.probe,
            ranks=(),
            how="slow" if one.unit == "s" else "failed-first",
            says=one.says,
            mode="check",
            evidence=one.evidence,
            world_size=max(one.measured.get("ranks", 1), 1),
            hosts=(plan.host,) if plan.host else (),
            foreseen=one,
        )
        for one in first.values()
    )


def _predicted(facts: Facts, probe: str, quantity: Quantity, want: Wanted) -> Prediction | None:
    found = series_of(facts, probe, quantity.name)
    rows = want.rows or (
        _not_reached(facts, found) if probe == DATA and quantity.name in (STARTUP, TIME) else None
    )
    size = (want.ranks if found[0].axis == "ranks" else rows) if found else None
    if not found or size is None:
        return None
    fits: dict[Setting, Fit | None] = {}
    why = ""
    for one in found:
        try:
            flat = unmoved(one.points, quantity.noise) if quantity.counts else None
            fits[one.setting] = flat or fit(
                one.points,
                max(quantity.noise, START_NOISE if probe == COMMAND and one.unit == "s" else 0.0),
                one.at_least,
            )
        except TooFewError as error:
            why = why or error.says
            if one.largest.size >= _NEARLY * size:
                fits[one.setting] = None  # what is measured needs no law
    if not fits:
        return _not_enough(found[-1], quantity, size, why)
    if found[0].axis == "ranks":
        want = replace(want, ranks=None)
    settings = list(fits) if quantity.with_workers else _furthest(found, fits)
    chosen = next(one for one in found if one.setting == _nearest(settings, want))
    return _Foresight(facts, quantity, want, found, chosen, fits, size).prediction()


def _not_reached(facts: Facts, found: Sequence[Series]) -> int | None:
    """The largest number of rows that was asked for, where the time did not suffice for it.

    Only times say how far it would have been: the sizes that were cheap enough may be a thousandth.
    """
    plan = facts.one(Plan)
    most = max(plan.rows, default=0) if plan is not None else 0
    return most if found and most > max(one.largest.size for one in found) else None


def _furthest(found: Sequence[Series], fits: dict[Setting, Fit | None]) -> list[Setting]:
    """The settings that were measured about as far as any: how time bends shows at the largest
    sizes.
    """
    sizes = {one.setting: one.largest.size for one in found if one.setting in fits}
    return [setting for setting, size in sizes.items() if FURTHER * size > max(sizes.values())]


def _nearest(settings: Sequence[Setting], want: Wanted) -> Setting:
    """The setting that is most like the planned one; between start methods the first that was
    measured.
    """

    def distance(one: Setting) -> tuple[bool, int, int]:
        workers, ranks = one.workers or 0, want.ranks or one.ranks
        planned = workers if want.workers is None else want.workers
        return (planned > 0) != (workers > 0), abs(planned - workers), abs(ranks - one.ranks)

    if want.workers is None:  # then the most that were measured
        most = max(one.workers or 0 for one in settings)
        settings = [one for one in settings if (one.workers or 0) == most]
    return min(settings, key=distance)


def _not_enough(one: Series, quantity: Quantity, size: int, why: str) -> Prediction:
    says = f"{quantity.says} is not predicted: {why}"
    points = tuple((point.size, point.value) for point in one.points)
    return Prediction(
        quantity.name,
        one.unit,
        one.axis,
        at={one.axis: size},
        points=points,
        probe=one.probe,
        cell=one.facts[-1].cell,
        says=says,
        evidence=_ids(one),
    )


def _ids(one: Series) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for fact in one.facts for id_ in fact.evidence))


@dataclass(frozen=True)
class _Foresight:
    """One number at one planned size, from the series of one setting and what the others tell of
    ranks and workers.
    """

    facts: Facts
    quantity: Quantity
    want: Wanted
    series: Sequence[Series]
    chosen: Series
    fits: dict[Setting, Fit | None]
    size: int

    def prediction(self) -> Prediction:
        own, quantity, setting = self.fits[self.chosen.setting], self.quantity, self.chosen.setting
        workers, ranks = self._workers(self.want.workers), self._ranks()
        times = workers.factor * ranks.factor
        if own is not None:
            said = interval(own, self.size)
            value, low, high = said.value * times, said.low * times, said.high * times
        else:
            value = self.chosen.largest.value * times
            low, high = value * (1 - 2 * quantity.noise), value * (1 + 2 * quantity.noise)
        bound = quantity.bound(self.facts)
        doubt = ASSUMED if workers.assumed or ranks.assumed else 1.0
        chance = self._chance(own, bound.value * doubt / times) if bound is not None else None
        in_step = self.chosen.largest.value * times * self.size / self.chosen.largest.size
        faster = steep(own) if own is not None else None
        endless = (
            quantity.name == TIME and faster is True and value >= max(LONG_S, FASTER * in_step)
        )
        least = least_chance(own, self.size) if own is not None else ANNOUNCED
        hit = ((chance is not None and chance >= least) or endless) and not self._brief(faster)
        at = {
            self.chosen.axis: self.size,
            **(
                {"ranks": self.want.ranks or setting.ranks}
                if quantity.sums and self.chosen.axis != "ranks"
                else {}
            ),
        }
        planned_workers = (
            self.want.workers
            if self.want.workers is not None and quantity.with_workers
            else setting.workers
        )
        at |= (
            {"workers": planned_workers}
            if planned_workers is not None and setting.workers is not None
            else {}
        )
        found = Prediction(
            name=quantity.name,
            unit=self.chosen.unit,
            axis=self.chosen.axis,
            law=own.law if own is not None else "measured",
            at=at,
            value=value,
            low=low,
            high=high,
            limit=bound.value if bound is not None else None,
            limit_name=bound.name if bound is not None else "",
            probability=round(chance, 4) if chance is not None else None,
            will_hit=hit,
            hits_at=(
                self._hits_at(own, bound.value / times)
                if hit and own is not None and bound is not None
                else {}
            ),
            exponent=round(exponent(own), 2) if own is not None else None,
            steep=faster,
            measured={
                "ranks": setting.ranks,
                **({"workers": setting.workers} if setting.workers is not None else {}),
            },
            times=times,
            basis="; ".join(text for text in (workers.basis, ranks.basis) if text),
            copies=self._copies(),
            safe_workers=self._safe_workers(high / times, ranks, bound),
            points=tuple((point.size, point.value) for point in self.chosen.points),
            curve=self._curve(own),
            probe=self.chosen.probe,
            cell=self.chosen.facts[-1].cell,
            evidence=tuple(
                dict.fromkeys(
                    [
                        *_ids(self.chosen),
                        *(id_ for fact in (bound.facts if bound else ()) for id_ in fact.evidence),
                    ]
                )
            ),
        )
        return replace(found, says=self._says(found, bound))

    def _brief(self, faster: bool | None) -> bool:
        """Do times grow steeply that are too short to tell? On a busy machine milliseconds do."""
        longest = max(point.value for point in (*self.chosen.points, *self.chosen.at_least))
        return self.chosen.unit == "s" and faster is not False and longest < TELLING_S

    def _workers(self, planned: int | None) -> Times:
        if not self.quantity.with_workers:
            return Times()
        return for_workers(
            self.chosen.setting, planned, self._at_plan, self.series, sums=self.quantity.sums
        )

    @cached_property
    def _at_plan(self) -> dict[Setting, float]:
        return {
            setting: interval(one, self.size).value
            for setting, one in self.fits.items()
            if one is not None
        }

    def _ranks(self) -> Times:
        return (
            for_ranks(self.chosen.setting, self.want.ranks, self.series)
            if self.quantity.sums
            else Times()
        )

    def _chance(self, own: Fit | None, limit: float) -> float:
        if own is not None:
            return share_above(own, self.size, limit)
        return 1.0 if self.chosen.largest.value > limit * (1 + self.quantity.noise) else 0.0

    def _hits_at(self, own: Fit, limit: float) -> dict[str, int]:
        reached = crossing(own, limit)
        if reached is None:
            return {}
        rows = max(1, round(reached.size))
        return {self.chosen.axis: rows, **({"step": step} if (step := self._step_at(rows)) else {})}

    def _step_at(self, rows: int) -> int | None:
        """The step of one rank at which so many rows have been read: what grows with the rows of
        a pass grows batch by batch.
        """
        if self.quantity.name not in ("fds", "shm") or self.chosen.axis != "rows":
            return None
        name = "batches" if self.chosen.probe != PROBES[0] else "steps"
        known = [
            fact
            for fact in self.facts.of(Measured)
            if fact.name == name and fact.probe == self.chosen.probe and fact.value > 0
        ]
        own = [
            fact
            for fact in known
            if fact.labels.get("rows") == self.chosen.largest.size
            and fact.labels.get("ranks", 1) == self.chosen.setting.ranks
        ]
        return (
            max(1, round(rows * max(fact.value for fact in own) / self.chosen.largest.size))
            if own
            else None
        )

    def _copies(self) -> float | None:
        """By how much more memory grows for each worker than without one: 1 where each holds all
        of the data again, 0 where they share it.
        """
        setting, own = self.chosen.setting, self.fits[self.chosen.setting]
        plain = next(
            (one for one in self.fits if one.workers == 0 and one.ranks == setting.ranks), None
        )
        without = self.fits[plain] if plain is not None else None
        if self.quantity.name != "pss" or not setting.workers or own is None or without is None:
            return None
        alone = interval(without, self.size).value - without.points[0].value
        grown = interval(own, self.size).value - own.points[0].value
        if alone <= 0.5 * without.points[0].value:  # the data is not yet what takes the memory
            return None
        return round(min(max((grown / alone - 1) / setting.workers, 0.0), 2.0), 2)

    def _safe_workers(self, high: float, ranks: Times, bound: bounds.Bound | None) -> int | None:
        """The most workers with which the whole interval stays below the limit; None where
        workers are not ours to count, or none is few enough.
        """
        if bound is None or not self.chosen.setting.workers or not self.quantity.with_workers:
            return None
        fitting = [
            count
            for count in range(_MOST_WORKERS + 1)
            if high * ranks.factor * self._workers(count).factor <= bound.value
        ]
        return max(fitting, default=None)

    def _curve(self, own: Fit | None) -> tuple[tuple[float, ...], ...]:
        """The law from the smallest measured size to the planned one, for the measured ranks and
        workers.
        """
        if own is None:
            return ()
        low, high = math.log(own.points[0].size), math.log(max(self.size, own.largest))
        found = []
        for place in range(_CURVE):
            size = math.exp(low + (high - low) * place / (_CURVE - 1))
            said = interval(own, size)
            found.append(
                tuple(float(f"{one:.5g}") for one in (size, said.value, said.low, said.high))
            )
        return tuple(found)

    def _says(self, one: Prediction, bound: bounds.Bound | None) -> str:
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        ends = span(one.low, one.high, one.unit)
        is_open = not one.will_hit and one.high > OPEN * one.low
        says = f"at {sizes(one.at)}: {self.quantity.says} " + (
            f"is open, {ends}" if is_open else f"{amount(one.value, one.unit)} ({ends})"
        )
        says += f", {bound.says}" if bound is not None else ""
        if one.hits_at:
            reached = f"{number(one.hits_at[one.axis])} {one.axis}"
            step = f"step {one.hits_at['step']:,}, " if "step" in one.hits_at else ""
            says += f"; reached at {step}{reached}"
        elif one.will_hit and bound is None:
            says += (
                f"; it {IN_WORDS[one.law]} of the {one.axis}, and growth in step would give"
                f" {amount(self._in_step(one), one.unit)}"
            )
        return says

    def _in_step(self, one: Prediction) -> float:
        return self.chosen.largest.value * one.times * self.size / self.chosen.largest.size
