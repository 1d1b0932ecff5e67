"""The wait-for graph as inline SVG: whoever waits stands to the left of what it waits for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.model.diagnosis import Report
from trainprobe.report.page.markup import Markup, element
from trainprobe.report.page.wait_graph import Edge, Node, WaitGraph, wait_graph
from trainprobe.report.phrases import clean

WIDTH, GAP, PAD = 236, 132, 12
LINE, NAME_LINE, BETWEEN = 15, 18, 26
NAME_LETTERS, SAYS_LETTERS, HOW_LETTERS = 25, 31, 19
_PLACE = re.compile(r" at [^\s,]+:\d+(?: in [^\s,]+)?")
_BADGES = {
    "culprit": "▲ culprit",
    "victim": "○ victim",
    "between": "",
    "end": "◆ end of the chain",
}


@dataclass
class _Box:
    node: Node
    name: list[str]
    says: list[str]
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> float:
        badge = LINE if self.badge else 0
        return 2 * PAD + NAME_LINE * len(self.name) + LINE * len(self.says) + badge - 4

    @property
    def badge(self) -> str:
        if self.node.in_cycle:
            culprit = " · culprit" if self.node.role == "culprit" else ""
            return f"⟳ in a cycle{culprit}"
        return _BADGES[self.node.role]

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def wait_graph_section(report: Report) -> Markup | None:
    """Return the drawing with its words; None where nobody is known to wait."""
    graph = wait_graph(report)
    if not graph.edges:
        return None
    verb = "Who waits for whom" if report.verdict in ("hung", "slow") else "What followed from what"
    words = [
        f"{graph.nodes[edge.waiter].name} → {graph.nodes[edge.awaited].name}"
        + (f" ({edge.how})" if edge.how else "")
        for edge in graph.edges
    ]
    cycle = any(edge.in_cycle for edge in graph.edges)
    key = [
        element("span", element("b", "▲"), " culprit", class_="key culprit"),
        element("span", element("b", "○"), " victim: carries no blame", class_="key victim"),
        element("span", element("b", "⟳"), " cycle", class_="key cycle") if cycle else None,
    ]
    return element(
        "section",
        element("h2", verb, id="waits-title"),
        element("p", *key, class_="keys", aria_hidden="true"),
        element(
            "div",
            _drawing(graph),
            class_="scroll graph",
            tabindex="0",
            role="group",
            aria_label="Drawing of the waits; it can be scrolled",
        ),
        element(
            "details",
            element("summary", "The same in words"),
            element("ul", *(element("li", line) for line in words), class_="plain"),
        ),
        id="waits",
        aria_labelledby="waits-title",
    )


def _drawing(graph: WaitGraph) -> Markup:
    boxes = [_Box(node, _broken(node.name, NAME_LETTERS, 3), _says(node)) for node in graph.nodes]
    width, height = _place(graph, boxes)
    back = [edge for edge in graph.edges if edge.is_backward]
    height += 54 if back else 0
    shapes = [_edge(edge, boxes, height) for edge in graph.edges]
    shapes += [_box(box) for box in boxes]
    labels = [_how(edge, boxes, height) for edge in graph.edges]
    names = "; ".join(
        f"{graph.nodes[edge.waiter].name} waits for {graph.nodes[edge.awaited].name}"
        for edge in graph.edges[:12]
    )
    return element(
        "svg",
        element("title", f"Wait-for graph: {names}"),
        element(
            "defs",
            *(
                element(
                    "marker",
                    element("path", d="M0 0 L8 4 L0 8 z", class_=f"head {kind}"),
                    id=f"head-{kind}",
                    viewbox="0 0 8 8",
                    refX="7",
                    refY="4",
                    markerWidth="8",
                    markerHeight="8",
                    markerUnits="userSpaceOnUse",
                    orient="auto",
                )
                for kind in ("plain", "cycle")
            ),
        ),
        *shapes,
        *labels,
        viewbox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
        class_="waits",
    )


def _says(node: Node) -> list[str]:
    return [line for says in node.says[:4] for line in _broken(says, SAYS_LETTERS, 2)]


def _place(graph: WaitGraph, boxes: Sequence[_Box]) -> tuple[float, float]:
    """Set the corners of all boxes and return the size of the drawing."""
    layers: dict[int, list[int]] = {}
    for place, node in enumerate(graph.nodes):
        layers.setdefault(node.layer, []).append(place)
    heights = {
        layer: sum(boxes[place].height for place in places) + BETWEEN * (len(places) - 1)
        for layer, places in layers.items()
    }
    tallest = max(heights.values())
    for column, layer in enumerate(sorted(layers)):
        y = (tallest - heights[layer]) / 2 + 4
        for place in layers[layer]:
            boxes[place].x, boxes[place].y = 4 + column * (WIDTH + GAP), y
            y += boxes[place].height + BETWEEN
    return 8 + len(layers) * WIDTH + (len(layers) - 1) * GAP, tallest + 8


def _box(box: _Box) -> Markup:
    node = box.node
    kind = f"{node.role}{' cycle' if node.in_cycle else ''}{'' if node.ranks else ' thing'}"
    y = box.y + PAD + 11
    lines = []
    if box.badge:
        lines.append(
            element("text", box.badge, x=f"{box.x + PAD:g}", y=f"{y - 1:g}", class_="badge")
        )
        y += LINE
    for line in box.name:
        lines.append(element("text", line, x=f"{box.x + PAD:g}", y=f"{y:g}", class_="name"))
        y += NAME_LINE
    y -= 2
    for line in box.says:
        lines.append(element("text", line, x=f"{box.x + PAD:g}", y=f"{y:g}", class_="says"))
        y += LINE
    return element(
        "g",
        element("title", f"{node.name}. {_BADGES[node.role]}. {'; '.join(node.says)}"),
        element(
            "rect",
            x=f"{box.x:g}",
            y=f"{box.y:g}",
            width=WIDTH,
            height=f"{box.height:g}",
            rx="14" if not node.ranks else "6",
        ),
        element("path", d=f"M{box.x + 3:g} {box.y + 8:g} v{box.height - 16:g}", class_="bar")
        if node.role in ("culprit", "end")
        else None,
        *lines,
        class_=f"node {kind}",
    )


def _ends(edge: Edge, boxes: Sequence[_Box], height: float) -> tuple[str, float, float]:
    """The path of an edge, and the middle of its label."""
    waiter, awaited = boxes[edge.waiter], boxes[edge.awaited]
    if edge.is_backward:
        start, end = waiter.x + WIDTH / 2, awaited.x + WIDTH / 2
        bottom = height - 20
        path = (
            f"M{start:g} {waiter.y + waiter.height:g} C{start:g} {bottom:g} {start:g} {bottom:g}"
            f" {start - 24 if end < start else start + 24:g} {bottom:g}"
            f" L{end + 24 if end < start else end - 24:g} {bottom:g}"
            f" C{end:g} {bottom:g} {end:g} {bottom:g} {end:g} {awaited.y + awaited.height + 2:g}"
        )
        return path, (start + end) / 2, bottom
    x1, y1, x2, y2 = waiter.x + WIDTH, waiter.middle, awaited.x - 2, awaited.middle
    bend = min(60.0, (x2 - x1) / 2)
    path = f"M{x1:g} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    # of a long edge the label stands beside its start, not over a box in between
    return path, x1 + GAP / 2, (y1 + y2) / 2 if x2 - x1 < GAP + 4 else y1


def _edge(edge: Edge, boxes: Sequence[_Box], height: float) -> Markup:
    path, _, _ = _ends(edge, boxes, height)
    kind = "cycle" if edge.in_cycle else "plain"
    return element("path", d=path, class_=f"edge {kind}", marker_end=f"url(#head-{kind})")


def _how(edge: Edge, boxes: Sequence[_Box], height: float) -> Markup | None:
    how = _without_place(edge.how)
    if not how:
        return None
    _, x, y = _ends(edge, boxes, height)
    letters = 64 if edge.is_backward else HOW_LETTERS
    lines = _broken(how, letters, 1 if edge.is_backward else 3)
    top = y - 8 - 13 * (len(lines) - 1) if not edge.is_backward else y - 7
    return element(
        "g",
        element("title", edge.how),
        *(
            element("text", line, x=f"{x:g}", y=f"{top + 13 * place:g}", text_anchor="middle")
            for place, line in enumerate(lines)
        ),
        class_="how",
    )


def _without_place(how: str) -> str:
    """The node says where its ranks stand."""
    return _PLACE.sub("", clean(how))


def _broken(text: str, letters: int, most: int) -> list[str]:
    """Break a text into at most `most` lines; the last one shows that it was cut."""
    words: list[str] = []
    for word in clean(text[:600]).split():
        while len(word) > letters:
            cut = max(word.rfind(sign, 1, letters) for sign in "/.,:-_") + 1
            cut = cut if cut > letters // 2 else letters
            words.append(word[:cut])
            word = word[cut:]  # noqa: PLW2901 - the rest of it
        words.append(word)
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= letters:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    if len(lines) > most:
        lines = lines[:most]
        lines[-1] = f"{lines[-1][: letters - 1]}…"
    return lines
