"""Loading takes time or memory that grows too fast with the data.

An index that is searched for each sample, a list that is copied at each step: the small set works, and the full one never can.

It is recognised by measurements at three or more numbers of rows (`took_s`, `build_s`, `pss`): growth to a power above 1.2 beyond the largest has to be clear, and
growth in step rules it out. It is foretold where the planned size meets a limit for such growth, or needs hours to start; a cell that computes in silence tells it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.predicted import again_planned, foreseen, grows_too_fast, too_long, weigh_foreseen
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.silent_growth import growth_says, silently_grown, weigh_silent
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import Facts, Measured
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.model.predictions import Prediction
from trainprobe.scaling import TooFewError, exponent, fit, steep
from trainprobe.scaling.saying import amount, number
from trainprobe.waits import SuspectGroup
from trainprobe.waits.data_timeouts import stop_says
from trainprobe.waits.sized import STARTUP, Series, by_setting

# What is looked at, how much it scatters, and below which value it is overhead.
NAMES = {"took_s": ("Time", 0.1, 1.0), "build_s": ("Time of building", 0.1, 1.0), "pss": ("Memory", 0.02, float(2**28))}
FORESEEN = ("pss", "took_s", STARTUP, "shm", "fds")


@dataclass(frozen=True)
class Growth:
    """How one number grew: `power` of the rows beyond the largest; `fast` is None where the points leave it open."""

    series: Series
    power: float
    fast: bool | None


def _growths(scene: Scene) -> tuple[Growth, ...]:
    """The fastest first."""
    own = scene.facts.of(Measured, cell=scene.cell)
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
        f"{NAMES[growth.series.name][0]} grows with the rows to the power {growth.power:.1f}: "
        f"{amount(first.value, unit)} for {number(first.size)} rows, {amount(last.value, unit)} for {number(last.size)}"
    )


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    if group.foreseen is not None:
        one = foreseen(group, *FORESEEN)
        if one is not None and (one.steep or (one.name == STARTUP and (grows_too_fast(one) or too_long(one)))):
            yield from weigh_foreseen(one)
        return
    if group.mode == "hang":
        return (yield from weigh_silent(Scene(facts, group)))
    if says := stop_says(facts, group.cell):
        return (yield weighing(-26, "probe-outcome", says))
    found = _growths(Scene(facts, group))
    if found and found[0].fast:
        yield weighing(26, "probe-outcome", _says(found[0]), *found[0].series.facts)
    elif found and all(one.fast is False for one in found):
        yield weighing(-26, "probe-outcome", f"Loading grows in step with the data (power {found[0].power:.1f})", *found[0].series.facts)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if (one := foreseen(group, *FORESEEN)) is not None:
        law = f"with the rows to the power {one.exponent or 0:.1f}" if grows_too_fast(one) else "with the rows"
        return sentence(f"Loading grows {law}, and the full size cannot work: {one.says}")
    if (work := silently_grown(Scene(facts, group))) is not None:
        return sentence(f"The work before the next sign of life grows too fast with the rows: {growth_says(work)}")
    found = _growths(Scene(facts, group))
    return sentence(f"Loading cannot work at the full size: {_says(found[0])[:1].lower()}{_says(found[0])[1:]}" if found else "Loading grows too fast")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene, one = Scene(facts, group), foreseen(group, *FORESEEN)
    verify = again_planned(scene, one) if one is not None else ""
    return (
        fix(
            scene,
            "Find what is done for each row over all rows",
            "py-spy record -o load.svg -- python load.py   (at two sizes: which line grew?)",
            verify=verify,
        ),
        fix(scene, "Do it once, beforehand", "tokenise and index into Arrow or memory-mapped arrays", verify=verify),
        fix(scene, "Stream or shard", "load_dataset(..., streaming=True); dataset.shard(world_size, rank)", _until(one), verify=verify),
    )


def _until(one: Prediction | None) -> str:
    rows = one.hits_at.get("rows") if one is not None else None
    return f"until then no more than {number(rows)} rows go below the limit" if rows else ""


CAUSE = Cause(
    id="dataset-scaling",
    title="Loading grows too fast with the data",
    means="Time or memory of loading grows so fast with the data that the full size cannot work though the small one does.",
    telling="Over growing sizes the fitted law has a power above 1.2, or start-up grows to many hours.",
    modes=("hang", "slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only scaled_dataset --dataset <FILE.py:NAME> --rows 100,1000,10000",
)
