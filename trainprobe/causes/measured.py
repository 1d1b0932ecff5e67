"""Causes that a probe's numbers show: what was measured beside its threshold."""

from __future__ import annotations

from collections.abc import Callable

from trainprobe.causes.model_stress import stressed_fixes, stressed_summary, weigh_stressed
from trainprobe.causes.phrases import Fixes, sentence
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import Finder, Sign, filled
from trainprobe.causes.statements import weigh_message
from trainprobe.facts import Measured


def measures(scene: Scene, *prefixes: str) -> tuple[Measured, ...]:
    """The cell's numbers with these prefixes; in a stress-test group only its property's."""
    one = scene.group.stressed
    if one is not None and f"{one.property}." not in prefixes:
        return ()
    return tuple(fact for fact in scene.of(Measured) if fact.name.startswith(prefixes))


def beyond(fact: Measured) -> bool:
    """Is it above its threshold, or above 0 if it has none and is not only a count?"""
    if fact.threshold is None and "suite" in fact.labels:
        return False
    return fact.value > (fact.threshold or 0.0)


def number_text(fact: Measured) -> str:
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
        yield weighing(26, "probe-outcome", number_text(bad), bad)
    elif found:
        says = f"{len(found)} measurements are within their thresholds"
        yield weighing(-26, "probe-outcome", says, *found[:3])


def measured_or_stated(prefix: str, wording: str = "", *, log_points: int = 13) -> Sign:
    """What was measured under `prefix`, and the message `wording` of a failing rank or the log."""

    def weigh(scene: Scene) -> Weighings:
        yield from weigh_measures(scene, prefix)
        if wording:
            yield from weigh_message(scene, wording, log_points=log_points)

    return weigh


def measured_summary(
    prefix: str, fault: str, *finders: str | Finder, otherwise: str = ""
) -> Callable[[Scene], str]:
    """The stress test's sentence, else `fault` with the worst number, a message or `otherwise`."""

    def summary(scene: Scene) -> str:
        number = worst(scene, prefix)
        found = (
            f": {number_text(number)}"
            if number is not None
            else filled("{quoted}", *finders)(scene)
        )
        rest = found or (f": {otherwise}" if otherwise else "")
        return stressed_summary(scene.group, prefix) or sentence(f"{fault}{rest}")

    return summary


def stressed_or(prefix: str, fixes: Fixes | Callable[[Scene], Fixes]) -> Callable[[Scene], Fixes]:
    """In a group of the stress test what helps against its finding, elsewhere `fixes`."""
    usual = fixes if callable(fixes) else lambda _: fixes
    return lambda scene: stressed_fixes(scene, prefix) or usual(scene)


def stressed_summary_or(prefix: str, otherwise: Callable[[Scene], str]) -> Callable[[Scene], str]:
    """In a group of the stress test its own sentence, elsewhere `otherwise`."""
    return lambda scene: stressed_summary(scene.group, prefix) or otherwise(scene)
