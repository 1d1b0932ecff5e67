"""Causes that a probe's numbers show: what was measured beside its threshold."""

from __future__ import annotations

from trainprobe.causes.model_stress import weigh_stressed
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, weigh_statement
from trainprobe.facts import Measured


def measures(scene: Scene, *prefixes: str) -> tuple[Measured, ...]:
    """The numbers of this cell whose names begin with one of these, such as `mask.`; in a group
    about a property of the model only its own.
    """
    one = scene.group.stressed
    if one is not None and f"{one.property}." not in prefixes:
        return ()
    return tuple(fact for fact in scene.of(Measured) if fact.name.startswith(prefixes))


def beyond(fact: Measured) -> bool:
    """Is it above its threshold? What has none must be 0, but for what the stress test only
    counts.
    """
    if fact.threshold is None and "suite" in fact.labels:
        return False
    return fact.value > (fact.threshold or 0.0)


def says(fact: Measured) -> str:
    """`mask.difference is 0.31 in layers.0.attention, above 0.001`."""
    unit = f" {fact.unit}" if fact.unit else ""
    labels = ", ".join(
        f"{name} {value}"
        for name, value in sorted(fact.labels.items())
        if isinstance(value, (str, int, float))
    )
    limit = f", above {fact.threshold:g}" if fact.threshold is not None and beyond(fact) else ""
    return f"{fact.name} is {fact.value:g}{unit}{f' ({labels[:120]})' if labels else ''}{limit}"


def worst(scene: Scene, *prefixes: str) -> Measured | None:
    """The number that is furthest above its threshold; None where none is above."""
    bad = [fact for fact in measures(scene, *prefixes) if beyond(fact)]
    return max(bad, key=lambda fact: fact.value / (fact.threshold or 1.0), default=None)


def weigh_measures(scene: Scene, *prefixes: str) -> Weighings:
    """26 points where a number is above its threshold; ruled out where all were measured and none
    is; nothing where none was.

    In a group about one property of the model the finding itself speaks, and only for the cause of
    this property.
    """
    if scene.group.stressed is not None:
        for prefix in prefixes:
            yield from weigh_stressed(scene.group, prefix)
        return
    found, bad = measures(scene, *prefixes), worst(scene, *prefixes)
    if bad is not None:
        yield weighing(26, "probe-outcome", says(bad), bad)
    elif found:
        yield weighing(
            -26,
            "probe-outcome",
            f"{len(found)} measurements are within their thresholds",
            *found[:3],
        )


def weigh_measured_or_stated(
    scene: Scene, prefix: str, wording: str, *, log_points: int = 13
) -> Weighings:
    """What was measured under `prefix`, and what a failing rank or the log says in the words of
    `wording`.
    """
    yield from weigh_measures(scene, prefix)
    heard = tuple(weigh_statement(scene, wording, log_points=log_points))
    yield from heard
    if heard:
        yield from first_to_fail(scene)
