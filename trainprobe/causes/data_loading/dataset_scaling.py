"""Loading takes time or memory that grows faster than the data.

An index that is searched for each sample, a list that is copied at each step, a shuffle of everything: the small set works, and the full
one never can.

It is recognised by the measurements at growing numbers of rows (`took_s` and `pss`, with their label `rows`): an exponent above 1.2 over at least three sizes,
or between the last two of them. Growth in step with the data rules it out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import measures
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import Facts, Measured
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

STEEP = 1.2  # an n log n sort over the sizes tried stays below it
NAMES = {"took_s": "Time", "pss": "Memory"}
LEAST = {"took_s": 1.0, "pss": float(2**28)}  # smaller numbers are overhead and noise


@dataclass(frozen=True)
class Growth:
    """How one number grew: `exponent` of the rows, by the slope of the logarithms."""

    name: str
    exponent: float
    facts: tuple[Measured, ...]


def _growths(scene: Scene) -> tuple[Growth, ...]:
    series: dict[tuple[str, object], dict[float, Measured]] = defaultdict(dict)
    for fact in measures(scene, *NAMES):
        rows = fact.labels.get("rows")
        if fact.name in NAMES and isinstance(rows, (int, float)) and rows > 0 and fact.value > 0:
            series[fact.name, fact.labels.get("workers")][float(rows)] = fact
    found = [Growth(name, _slope(points), tuple(points[rows] for rows in sorted(points))) for (name, _), points in series.items() if len(points) >= 3]
    return tuple(sorted((one for one in found if one.facts[-1].value >= LEAST[one.name]), key=lambda one: -one.exponent))


def _slope(points: dict[float, Measured]) -> float:
    """The slope over all sizes, or over the last two where that is steeper: overhead flattens the small ones."""
    rows = sorted(points)
    at = [(math.log(one), math.log(points[one].value)) for one in rows]
    mean_x, mean_y = sum(x for x, _ in at) / len(at), sum(y for _, y in at) / len(at)
    spread = sum((x - mean_x) ** 2 for x, _ in at)
    whole = sum((x - mean_x) * (y - mean_y) for x, y in at) / spread if spread else 0.0
    (x1, y1), (x2, y2) = at[-2:]
    return max(whole, (y2 - y1) / (x2 - x1))


def _says(growth: Growth) -> str:
    first, last = growth.facts[0], growth.facts[-1]
    unit = " s" if growth.name == "took_s" else " bytes"
    return (
        f"{NAMES[growth.name]} grows with the rows to the power {growth.exponent:.1f}: "
        f"{first.value:g}{unit} for {first.labels['rows']} rows, {last.value:g}{unit} for {last.labels['rows']}"
    )


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    found = _growths(Scene(facts, group))
    steep = [growth for growth in found if growth.exponent > STEEP]
    if steep:
        yield weighing(26, "probe-outcome", _says(steep[0]), *steep[0].facts)
    elif found:
        yield weighing(-26, "probe-outcome", f"Loading grows in step with the data (power {found[0].exponent:.1f})", *found[0].facts)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    found = _growths(Scene(facts, group))
    return sentence(f"Loading cannot work at the full size: {_says(found[0])[:1].lower()}{_says(found[0])[1:]}" if found else "Loading grows too fast")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Find what is done for each row over all rows", "py-spy record -o load.svg -- python load.py   (at two sizes: which line grew?)"),
        fix(scene, "Do it once, beforehand", "tokenise and index into Arrow or memory-mapped arrays"),
        fix(scene, "Stream or shard", "load_dataset(..., streaming=True); dataset.shard(world_size, rank)"),
    )


CAUSE = Cause(
    id="dataset-scaling",
    title="Loading grows faster than the data",
    means="Time or memory of loading grows faster than the data, so the full size cannot work though the small one does.",
    telling="Over growing sizes the fitted exponent is above 1.2.",
    modes=("slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only scaled_dataset, or the loader alone over growing sizes",
)
