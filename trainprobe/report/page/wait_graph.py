"""Who waits for whom, as a graph of few nodes: victims, the chain, the culprit. Ranks that stand
alike are one node, however many they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainprobe.model.diagnosis import RankRow, Report
from trainprobe.model.ranks import name_ranks, unfold_ranks
from trainprobe.report.phrases import duration

Role = Literal["victim", "culprit", "between", "end"]
CLASSES_CAP = 14
_RANKS = re.compile(r"ranks? (?P<set>\d[\d ,-]*(?: and \d[\d-]*)?)(?:, which .*)?")


@dataclass
class Node:
    """`says` are lines below the name; `ranks` is empty for what is no rank."""

    name: str
    ranks: frozenset[int] = frozenset()
    says: list[str] = field(default_factory=list)
    role: Role = "between"
    in_cycle: bool = False
    layer: int = 0


@dataclass
class Edge:
    """`waiter` waits for `awaited`, both places in the list of nodes."""

    waiter: int
    awaited: int
    how: str = ""
    in_cycle: bool = False
    is_backward: bool = False


@dataclass
class WaitGraph:
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def node(self, name: str, ranks: frozenset[int] = frozenset()) -> int:
        """The place of the node of this name, which is added where it is new."""
        for place, known in enumerate(self.nodes):
            if known.name == name or (ranks and known.ranks == ranks):
                return place
        self.nodes.append(Node(name, ranks))
        return len(self.nodes) - 1

    def edge(self, waiter: int, awaited: int, how: str) -> None:
        if waiter != awaited and not any(
            (one.waiter, one.awaited) == (waiter, awaited) for one in self.edges
        ):
            self.edges.append(Edge(waiter, awaited, how))


def ranks_named(text: str) -> frozenset[int]:
    """Return the ranks of `ranks 0-2 and 5`, as `name_ranks` writes them; empty for another
    text.
    """
    match = _RANKS.fullmatch(text.strip())
    if match is None:
        return frozenset()
    try:
        return frozenset(unfold_ranks(match["set"].replace(" and ", ",").replace(" ", "")))
    except ValueError:
        return frozenset()


def wait_graph(report: Report) -> WaitGraph:
    """Return the graph of `report`; without edges where nobody is known to wait."""
    graph = WaitGraph()
    first = list({cause.group: cause for cause in reversed(report.causes)}.values())[::-1]
    culprits: set[int] = set()
    for cause in first:
        for link in cause.chain:
            waiter = graph.node(link.waiter, ranks_named(link.waiter))
            graph.edge(waiter, graph.node(link.awaited, ranks_named(link.awaited)), link.how)
        culprits |= set(cause.ranks)
    _add_other_ranks(graph, report)
    _add_cascade(graph, report)
    if not graph.edges:
        return WaitGraph()
    connected = {place for edge in graph.edges for place in (edge.waiter, edge.awaited)}
    everyone = {row.rank for row in report.world.ranks}
    for place, node in enumerate(graph.nodes):
        node.says = node.says or _standing(node, report.world.ranks)
        blamed = bool(node.ranks) and node.ranks <= culprits and node.ranks != everyone
        waits = any(edge.waiter == place for edge in graph.edges)
        if blamed or (not waits and not culprits):
            node.role = "culprit"
        elif node.ranks:
            node.role = "victim"
        elif not waits:
            node.role = "end"
    kept = sorted(connected)
    moved = {old: new for new, old in enumerate(kept)}
    graph.nodes = [graph.nodes[place] for place in kept]
    for edge in graph.edges:
        edge.waiter, edge.awaited = moved[edge.waiter], moved[edge.awaited]
    _mark_cycles(graph)
    _set_layers(graph)
    return graph


def _add_other_ranks(graph: WaitGraph, report: Report) -> None:
    """Ranks that no chain names, in classes of those that stand alike."""
    shown = frozenset().union(*(node.ranks for node in graph.nodes))
    alike: dict[tuple[str, str, str], list[RankRow]] = {}
    for row in report.world.ranks:
        if row.rank is not None and row.rank not in shown and row.waits_for:
            alike.setdefault((row.state, row.where, row.waits_for), []).append(row)
    classes = sorted(alike.items(), key=lambda item: -len(item[1]))
    for (_, _, waits_for), rows in classes[:CLASSES_CAP]:
        ranks = frozenset(row.rank for row in rows if row.rank is not None)
        waiter = graph.node(name_ranks(ranks), ranks)
        wanted = ranks_named(waits_for)
        targets = [
            place
            for place, node in enumerate(graph.nodes)
            if place != waiter and wanted and node.ranks and node.ranks & wanted
        ]
        for target in targets or [graph.node(waits_for, wanted)]:
            graph.edge(waiter, target, "waits for")
    rest = [rank for _, rows in classes[CLASSES_CAP:] for row in rows if (rank := row.rank)]
    if rest:
        more = graph.node(f"{len(rest)} more ranks", frozenset(rest))
        graph.nodes[more].says = [f"at {len(classes) - CLASSES_CAP} other places"]


def _add_cascade(graph: WaitGraph, report: Report) -> None:
    """Where no wait was seen: those that failed after the culprit."""
    for row in report.cascade:
        if graph.edges and report.verdict == "hung":
            return
        if not 0 <= row.because_of < len(report.causes) or not row.ranks:
            continue
        cause = report.causes[row.because_of]
        ranks = frozenset(cause.ranks)
        name = name_ranks(ranks, ", ".join(cause.hosts[:3]) or cause.title)
        victims = frozenset(row.ranks)
        if ranks & victims:
            continue
        waits = report.verdict in ("hung", "slow")
        waiter = graph.node(name_ranks(victims), victims)
        graph.edge(waiter, graph.node(name, ranks), "waits for" if waits else "failed after")


def _standing(node: Node, rows: Sequence[RankRow]) -> list[str]:
    """Where the ranks of a node stand, and for how long."""
    if not node.ranks:
        return []
    own = [row for row in rows if row.rank in node.ranks]
    places = Counter(row.where.strip() for row in own if row.where.strip())
    says = []
    if places:
        where, _ = places.most_common(1)[0]
        says.append(where)
        lines = Counter(row.source for row in own if row.source and row.where.strip() == where)
        says += [lines.most_common(1)[0][0]] if lines else []
    if len(places) > 1:
        says.append(f"and {len(places) - 1} other place{'s' if len(places) > 2 else ''}")
    state = Counter(row.state for row in own).most_common(1)
    since = max((row.since_s for row in own if row.since_s is not None), default=None)
    if state and own:
        hosts = sorted({row.host for row in own if row.host})
        on = f" on {hosts[0]}" if len(hosts) == 1 else ""
        span = f" for {duration(since)}" if since is not None and since >= 1 else ""
        says.insert(0, f"{state[0][0]}{span}{on}")
    return says


def _mark_cycles(graph: WaitGraph) -> None:
    """Mark the nodes and edges that lie on a cycle: those that reach themselves."""
    reached = [_reached(graph, place) for place in range(len(graph.nodes))]
    for place, node in enumerate(graph.nodes):
        node.in_cycle = place in reached[place]
    for edge in graph.edges:
        edge.in_cycle = edge.waiter in reached[edge.awaited] | {edge.awaited} and (
            graph.nodes[edge.waiter].in_cycle and graph.nodes[edge.awaited].in_cycle
        )


def _reached(graph: WaitGraph, start: int) -> set[int]:
    found: set[int] = set()
    todo = [start]
    while todo:
        place = todo.pop()
        for edge in graph.edges:
            if edge.waiter == place and edge.awaited not in found:
                found.add(edge.awaited)
                todo.append(edge.awaited)
    return found


def _set_layers(graph: WaitGraph) -> None:
    """Put whoever waits to the left of what it waits for. In a cycle the edge that closes it goes
    backward.
    """
    order: list[int] = []
    state = [0] * len(graph.nodes)
    starts = _starts(graph)
    for start in starts:
        _visit(graph, start, state, order)
    place_of = {place: number for number, place in enumerate(reversed(order))}
    for edge in graph.edges:
        edge.is_backward = place_of[edge.waiter] > place_of[edge.awaited]
    for place in reversed(order):
        for edge in graph.edges:
            if edge.waiter == place and not edge.is_backward:
                after = graph.nodes[edge.awaited]
                after.layer = max(after.layer, graph.nodes[place].layer + 1)
    # Pull a waiter up to what it waits for.
    for place in order:
        ahead = [
            graph.nodes[edge.awaited].layer
            for edge in graph.edges
            if edge.waiter == place and not edge.is_backward
        ]
        behind = any(edge.awaited == place and not edge.is_backward for edge in graph.edges)
        if ahead and not behind:
            graph.nodes[place].layer = max(graph.nodes[place].layer, min(ahead) - 1)


def _starts(graph: WaitGraph) -> Iterable[int]:
    awaited = {edge.awaited for edge in graph.edges}
    places = range(len(graph.nodes))
    culprits_last = sorted(places, key=lambda place: graph.nodes[place].role != "victim")
    return [*(one for one in places if one not in awaited), *culprits_last]


def _visit(graph: WaitGraph, start: int, state: list[int], order: list[int]) -> None:
    """Depth first, each node after what it waits for; without recursion."""
    todo = [(start, False)]
    while todo:
        place, done = todo.pop()
        if done:
            order.append(place)
            continue
        if state[place]:
            continue
        state[place] = 1
        todo.append((place, True))
        todo += [
            (edge.awaited, False)
            for edge in reversed(graph.edges)
            if edge.waiter == place and not state[edge.awaited]
        ]
