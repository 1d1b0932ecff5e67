"""Memory, descriptors and time over the size of the data, with the law, its interval and the limit:
both axes by powers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from trainprobe.model.diagnosis import Report
from trainprobe.model.predictions import Prediction
from trainprobe.report.page.markup import Markup, element, joined
from trainprobe.report.prediction_section import NAMES, PROBES
from trainprobe.scaling.wording import amount, number

WIDTH, HEIGHT = 420, 230
LEFT, RIGHT, TOP, BOTTOM = 66, 18, 16, 34
CHARTS_CAP = 8
Point = tuple[float, float]


def scaling_section(report: Report) -> Markup | None:
    """Return a chart for each number that was predicted, and a sentence for each that was not."""
    if not report.predictions:
        return None
    known = [one for one in report.predictions if one.value is not None]
    refused = [one for one in report.predictions if one.value is None]
    ordered = sorted(known, key=lambda one: not one.will_hit)
    return element(
        "section",
        element("h2", "At the planned size", id="scaling-title"),
        element("div", *map(_figure, ordered[:CHARTS_CAP]), class_="charts") if known else None,
        element(
            "ul",
            *(element("li", one.says) for one in [*ordered[CHARTS_CAP:], *refused]),
            class_="plain faint",
        ),
        id="scaling",
        aria_labelledby="scaling-title",
    )


def _figure(what: Prediction) -> Markup:
    name = NAMES.get(what.name, what.name)
    probe = PROBES.get(what.probe, what.probe)
    chart = _chart(what)
    return element(
        "figure",
        element(
            "figcaption",
            element("b", name[:1].upper() + name[1:]),
            element("small", probe) if probe else None,
            element("span", "▲ over the limit", class_="mark") if what.will_hit else None,
            element("p", what.says),
            element("p", what.basis, class_="faint") if what.basis else None,
        ),
        chart,
        class_="bad" if what.will_hit else None,
    )


def _chart(what: Prediction) -> Markup | None:
    value = what.value or 0.0
    target = float(what.at.get(what.axis, 0))
    spots = [(point[0], point[1] * what.times) for point in what.points if len(point) >= 2]
    law = [(point[0], point[1] * what.times) for point in what.curve if len(point) >= 2]
    band = [
        (point[0], point[2] * what.times, point[3] * what.times)
        for point in what.curve
        if len(point) >= 4
    ]
    sizes = [size for size, _ in (*spots, *law)] + [target]
    levels = [level for _, level in (*spots, *law)] + [value, what.limit or 0, what.high or 0]
    levels += [what.low or 0]
    sizes, levels = _positive(sizes), _positive(levels)
    if len(set(sizes)) < 2 or len(set(levels)) < 2:
        return None
    left, right = math.log(min(sizes)), math.log(max(sizes))
    low, high = math.log(min(levels)), math.log(max(levels))
    low, high = low - 0.06 * (high - low), high + 0.08 * (high - low)

    def x(size: float) -> float:
        part = (math.log(max(size, 1e-12)) - left) / (right - left)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(level: float) -> float:
        part = (math.log(max(level, 1e-300)) - low) / (high - low)
        return TOP + (1 - min(max(part, -0.05), 1.05)) * (HEIGHT - TOP - BOTTOM)

    parts = [*_axes(what, sizes, (low, high), x, y)]
    if band:
        upper = [(size, most) for size, _, most in band if most > 0]
        lower = [(size, least) for size, least, _ in reversed(band) if least > 0]
        parts.append(element("polygon", points=_points([*upper, *lower], x, y), class_="band"))
    if len(law) > 1:
        parts.append(element("polyline", points=_points(law, x, y), class_="law"))
    if what.limit:
        height = y(what.limit)
        parts += [
            element("path", d=f"M{LEFT} {height:.1f} H{WIDTH - RIGHT}", class_="limit"),
            element(
                "text",
                f"{what.limit_name or 'limit'} {amount(what.limit, what.unit)}",
                x=WIDTH - RIGHT,
                y=f"{height - 5:.1f}",
                text_anchor="end",
                class_="limit",
            ),
        ]
    parts += [
        element("circle", cx=f"{x(size):.1f}", cy=f"{y(level):.1f}", r="4", class_="measured")
        for size, level in spots
        if size > 0 and level > 0
    ]
    if target > 0 and value > 0:
        if what.low and what.high:
            parts.append(
                element(
                    "path",
                    d=f"M{x(target):.1f} {y(what.low):.1f} V{y(what.high):.1f}",
                    class_="spread",
                )
            )
        middle, height = x(target), y(value)
        parts.append(
            element(
                "path",
                d=f"M{middle:.1f} {height - 7:.1f} l7 7 l-7 7 l-7 -7 z",
                class_="predicted hit" if what.will_hit else "predicted",
            )
        )
    says = f"{what.says} Circles are measured, the line is the law, the diamond is predicted."
    return element(
        "svg",
        element("title", says),
        *parts,
        viewbox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        class_="chart",
    )


def _positive(values: Iterable[float]) -> list[float]:
    return [value for value in values if value > 0 and math.isfinite(value)]


def _points(points: Sequence[Point], x: object, y: object) -> str:
    assert callable(x)
    assert callable(y)
    return " ".join(f"{x(size):.1f},{y(level):.1f}" for size, level in points if level > 0)


def _round_levels(low: float, high: float, unit: str) -> list[float]:
    """At most six levels with short names: powers of two for bytes, else 1, 2 and 5."""
    if unit == "bytes":
        every = [2.0**power for power in range(61)]
    else:
        every = [part * 10.0**power for power in range(-6, 16) for part in (1, 2, 5)]
    found = [level for level in every if low <= level <= high]
    return found[:: max(1, math.ceil(len(found) / 6))]


def _axes(
    what: Prediction, sizes: Sequence[float], levels: tuple[float, float], x: object, y: object
) -> Iterable[Markup]:
    assert callable(x)
    assert callable(y)
    bottom = HEIGHT - BOTTOM
    for level in _round_levels(math.exp(levels[0]), math.exp(levels[1]), what.unit):
        yield element("path", d=f"M{LEFT} {y(level):.1f} H{WIDTH - RIGHT}", class_="grid-line")
        yield element(
            "text", amount(level, what.unit), x=LEFT - 6, y=f"{y(level) + 4:.1f}", text_anchor="end"
        )
    yield element("path", d=f"M{LEFT} {TOP} V{bottom} H{WIDTH - RIGHT}", class_="axis")
    shown: list[float] = []
    for size in sorted({min(sizes), max(sizes), *(point[0] for point in what.points)}):
        if all(abs(x(size) - x(other)) > 52 for other in shown):
            shown.append(size)
    if max(sizes) not in shown:
        shown = [size for size in shown if abs(x(size) - x(max(sizes))) > 52] + [max(sizes)]
    for size in shown:
        anchor = "end" if size == max(sizes) else "middle"
        yield element("text", number(size), x=f"{x(size):.1f}", y=bottom + 15, text_anchor=anchor)
    yield joined(element("text", what.axis, x=LEFT, y=HEIGHT - 4, class_="axis-name"))
