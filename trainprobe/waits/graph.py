"""A directed graph of waits: its sinks, its cycles, and the chain from a victim to what it waits
for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from trainprobe.model.waits import Node, Wait


class Graph:
    """Nodes and the waits between them. It is never changed once built."""

    def __init__(self, nodes: Iterable[Node], waits: Iterable[Wait]) -> None:
        self.waits: tuple[Wait, ...] = tuple(waits)
        ends = (node for wait in self.waits for node in (wait.waiter, wait.awaited))
        self.nodes: tuple[Node, ...] = tuple(dict.fromkeys([*nodes, *ends]))
        self._out: dict[Node, list[Wait]] = defaultdict(list)
        self._into: dict[Node, list[Node]] = defaultdict(list)
        self._direct: dict[tuple[Node, Node], tuple[int, Wait]] = {}
        for place, wait in enumerate(self.waits):
            self._out[wait.waiter].append(wait)
            self._into[wait.awaited].append(wait.waiter)
            self._direct.setdefault((wait.waiter, wait.awaited), (place, wait))
        self._reaching: dict[
            frozenset[Node], frozenset[Node]
        ] = {}  # asked several times for each end

    def waits_of(self, node: Node) -> tuple[Wait, ...]:
        """The waits that leave `node`."""
        return tuple(self._out.get(node, ()))

    def waiters_of(self, node: Node) -> tuple[Node, ...]:
        """Those who wait for `node` itself."""
        return tuple(self._into.get(node, ()))

    def ends(self) -> tuple[tuple[Node, ...], ...]:
        """The components that nothing leads out of: a single node is a sink, several are a
        cycle. In the order of `nodes`.
        """
        components = self._components()
        home = {node: index for index, component in enumerate(components) for node in component}
        ends = [
            component
            for index, component in enumerate(components)
            if all(
                home[wait.awaited] == index for node in component for wait in self.waits_of(node)
            )
        ]
        place = {node: index for index, node in enumerate(self.nodes)}
        return tuple(
            tuple(sorted(component, key=place.__getitem__))
            for component in sorted(ends, key=lambda c: min(place[n] for n in c))
        )

    def reaches(self, goals: Iterable[Node]) -> frozenset[Node]:
        """All nodes from which some goal can be reached, the goals themselves left out."""
        goal_set = frozenset(goals)
        if goal_set not in self._reaching:
            seen, queue = set(goal_set), deque(goal_set)
            while queue:
                for node in self._into.get(queue.popleft(), ()):
                    if node not in seen:
                        seen.add(node)
                        queue.append(node)
            self._reaching[goal_set] = frozenset(seen - goal_set)
        return self._reaching[goal_set]

    def chain(self, start: Node, goals: Iterable[Node]) -> tuple[Wait, ...]:
        """The shortest chain of waits from `start` to any goal, of several the first in the order
        of the waits; empty where there is none.

        Searched from the goals on: a rank may wait for thousands, and few wait for one.
        """
        levels = self._levels(start, set(goals) - {start})
        steps: list[Wait] = []
        node = start
        for level in reversed(levels):
            known = (self._direct.get((node, nearer)) for nearer in level)
            _, step = min(filter(None, known), key=lambda found: found[0])
            steps.append(step)
            node = step.awaited
        return tuple(steps)

    def _levels(self, start: Node, goals: set[Node]) -> list[list[Node]]:
        """The goals, those one wait before them, and so on to those that `start` waits for;
        empty where it reaches none.
        """
        seen, levels = set(goals), [list(goals)]
        while levels[-1]:
            before = [node for nearer in levels[-1] for node in self._into.get(nearer, ())]
            if start in before:
                return levels
            levels.append([node for node in dict.fromkeys(before) if node not in seen])
            seen.update(levels[-1])
        return []

    def _components(self) -> list[list[Node]]:
        """Strongly connected components by Tarjan's algorithm, without recursion: a graph of
        10,000 ranks is deep.
        """
        index: dict[Node, int] = {}
        low: dict[Node, int] = {}
        on_stack: set[Node] = set()
        stack: list[Node] = []
        found: list[list[Node]] = []
        for root in self.nodes:
            if root in index:
                continue
            work = [(root, iter(self.waits_of(root)))]
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            while work:
                node, following = work[-1]
                for wait in following:
                    awaited = wait.awaited
                    if awaited not in index:
                        index[awaited] = low[awaited] = len(index)
                        stack.append(awaited)
                        on_stack.add(awaited)
                        work.append((awaited, iter(self.waits_of(awaited))))
                        break
                    if awaited in on_stack:
                        low[node] = min(low[node], index[awaited])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        component = []
                        while True:
                            member = stack.pop()
                            on_stack.discard(member)
                            component.append(member)
                            if member == node:
                                break
                        found.append(component)
        return found
