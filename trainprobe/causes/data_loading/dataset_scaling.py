"""Loading takes time or memory that grows too fast with the data.

An index that is searched for each sample, a list that is copied at each step: the small set works,
and the full one never can.

It is recognised by measurements at three or more numbers of rows (`took_s`, `build_s`, `pss`):
growth to a power above 1.2 beyond the largest has to be clear, and growth in step rules it out. It
is foretold where the planned size meets a limit for such growth, or needs hours to start; a cell
that computes in silence tells it too.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.awaited import endless
from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.predicted import (
    again_planned,
    foreseen,
    grows_too_fast,
    too_long,
    weigh_foreseen,
)
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Measured, Rung
from trainprobe.model.predictions import Prediction
from trainprobe.scaling import Point, TooFewError, exponent, fit, steep
from trainprobe.scaling.wording import amount, number
from trainprobe.waits.data_timeouts import stop_says
from trainprobe.waits.measured_series import STARTUP, Series, by_setting
from trainprobe.waits.silent_work import SilentWork, silent_work

# What is looked at, how much it scatters, and below which value it is overhead.
NAMES = {
    "took_s": ("Time", 0.1, 1.0),
    "build_s": ("Time of building", 0.1, 1.0),
    "pss": ("Memory", 0.02, float(2**28)),
}
FORESEEN = ("pss", "took_s", STARTUP, "shm", "fds")


@dataclass(frozen=True)
class Growth:
    """`power` of the rows by which a number grew; `fast` is None if the points leave it open."""

    series: Series
    power: float
    fast: bool | None


def _growths(scene: Scene) -> tuple[Growth, ...]:
    """The fastest first."""
    own = scene.of(Measured)
    found = []
    for name, (_, noise, least) in NAMES.items():
        for series in by_setting(own, name):
            if max(point.value for point in (series.largest, *series.at_least)) >= least:
                try:
                    law = fit(series.points, noise, series.at_least)
                except TooFewError:
                    continue
                found.append(Growth(series, exponent(law), steep(law)))
    return tuple(sorted(found, key=lambda one: (one.fast is not True, -one.power)))


def _says(growth: Growth) -> str:
    first, last, unit = growth.series.points[0], growth.series.largest, growth.series.unit
    return (
        f"{NAMES[growth.series.name][0]} grows with the rows to the power {growth.power:.1f}:"
        f" {amount(first.value, unit)} for {number(first.size)} rows, {amount(last.value, unit)}"
        f" for {number(last.size)}"
    )


def _weigh(scene: Scene) -> Weighings:
    if scene.group.foreseen is not None:
        prediction = foreseen(scene.group, *FORESEEN)
        if prediction is not None and (
            prediction.steep
            or (prediction.name == STARTUP and (grows_too_fast(prediction) or too_long(prediction)))
        ):
            yield from weigh_foreseen(prediction)
        return
    if scene.group.mode == "hang":
        return (yield from weigh_silent(scene))
    if says := stop_says(scene.facts, scene.cell):
        return (yield weighing(-26, "probe-outcome", says))
    found = _growths(scene)
    if found and found[0].fast:
        yield weighing(26, "probe-outcome", _says(found[0]), *found[0].series.facts)
    elif found and all(prediction.fast is False for prediction in found):
        text = f"Loading grows in step with the data (power {found[0].power:.1f})"
        yield weighing(-26, "probe-outcome", text, *found[0].series.facts)


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, *FORESEEN)) is not None:
        law = "with the rows"
        if grows_too_fast(prediction):
            law = f"with the rows to the power {prediction.exponent or 0:.1f}"
        return f"Loading grows {law}, and the full size cannot work: {prediction.says}"
    if (work := silently_grown(scene)) is not None:
        return (
            "The work before the next sign of life grows too fast with the rows:"
            f" {growth_says(work)}"
        )
    found = _growths(scene)
    return (
        f"Loading cannot work at the full size: {_says(found[0])[:1].lower()}{_says(found[0])[1:]}"
        if found
        else "Loading grows too fast"
    )


FIXES = """
Find what is done for each row over all rows
    py-spy record -o load.svg -- python load.py   (at two sizes: which line grew?)
    verify: {again}
Do it once, beforehand
    tokenise and index into Arrow or memory-mapped arrays
    verify: {again}
Stream or shard
    load_dataset(..., streaming=True); dataset.shard(world_size, rank)
    {until}
    verify: {again}
"""


def _fixes(scene: Scene) -> Fixes:
    prediction = foreseen(scene.group, *FORESEEN)
    again = again_planned(scene, prediction) if prediction is not None else ""
    return fixes(FIXES, again=again, until=_until(prediction))


def _until(prediction: Prediction | None) -> str:
    rows = prediction.hits_at.get("rows") if prediction is not None else None
    return f"until then no more than {number(rows)} rows go below the limit" if rows else ""


# A cell of the user's command that computed in silence until it was ended: did smaller ones show
# that its work grows too fast with the rows?
NOISE_S = 0.5  # two starts of one program differ by as much
GROWN = 1.3
FASTER = 1.5  # times what growth in step would need by now


def silently_grown(scene: Scene) -> SilentWork | None:
    """The work of the group's cell, where the group's ranks were seen to compute."""
    rung = next((rung for rung in scene.of(Rung) if rung.outgrown), None)
    work = silent_work(scene.facts, rung) if rung is not None else None
    moved = [thread for thread in scene.threads(scene.ranks) if thread.moved]
    if (
        work is not None
        and work.smaller
        and moved
        and not any(endless(scene, thread) for thread in moved)
    ):
        return work
    return None


def growth_says(work: SilentWork) -> str:
    shown = ", ".join(
        f"{amount(point.value, 's')} for {number(point.size)} rows" for point in work.smaller[-3:]
    )
    return f"{shown}, and more than {amount(work.took_s, 's')} for {number(work.rung.rows or 0)}"


def weigh_silent(scene: Scene) -> Weighings:
    """Decisive only if smaller sizes grew too: an endless loop looks the same at one size."""
    work = silently_grown(scene)
    if work is None:
        return
    points = 26 if _grew(work) and _faster(work) else 13
    says = f"The work grows with the rows: {growth_says(work)}"
    yield weighing(points, "probe-outcome", says, work.rung, *work.facts)
    thread = next(thread for thread in scene.threads(scene.ranks) if thread.moved)
    says = (
        f"Rank {thread.rank} is at work{f' at {thread.where}' if thread.where else ''}, and moved"
        " on between the looks"
    )
    yield weighing(6, "suspects-stack", says, thread)


def _grew(work: SilentWork) -> bool:
    first, last = work.smaller[0].value, work.smaller[-1].value
    return len(work.smaller) > 1 and last - first > NOISE_S and last > GROWN * first


def _faster(work: SilentWork) -> bool:
    """Has it taken longer already than growth in step allows?"""
    rows, last = float(work.rung.rows or 0), work.smaller[-1]
    if work.took_s > FASTER * last.value * rows / last.size:
        return True
    try:
        return steep(fit([*work.smaller, Point(rows, work.took_s)])) is True
    except TooFewError:
        return False


CAUSE = Cause(
    id="dataset-scaling",
    title="Loading grows too fast with the data",
    modes=("hang", "slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "trainprobe diagnose --only scaled_dataset --dataset <FILE.py:NAME> --rows 100,1000,10000"
    ),
)
