"""The groups of suspects of a hung live job, with what they do and the chain that leads to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.model.diagnosis import Link
from trainprobe.model.waits import Node
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.hang import all_met, divergence_group, group_of_end, merged, parting
from trainprobe.waits.headlines import nowhere
from trainprobe.waits.live_graph import LiveGraph
from trainprobe.waits.suspects import SuspectGroup


class HangGroups:
    """Makes the groups of the ends of one job's graph."""

    def __init__(self, live: LiveGraph) -> None:
        self.live = live
        self.facts, self.job, self.rung, self.ranks = live.facts, live.job, live.rung, live.ranks
        self.graph, self.by_node, self.edges = live.graph, live.by_node, live.edges

    def groups(self, ends: Sequence[tuple[Node, ...]]) -> tuple[SuspectGroup, ...]:
        divergence = parting(self.facts, self.job.cell, self.ranks)
        if divergence is not None and divergence.kind != "missing" and all_met(self.ranks):
            return (divergence_group(self.rung, self.ranks, divergence),)
        found = []
        for end in ends:
            group = group_of_end(self.rung, self.ranks, self.graph, end, divergence, self.by_node)
            if group is not None:
                found.append(self._with_chain(self._said(group), end))
        return merged(self._of_one_loop(found))

    def _of_one_loop(self, groups: Sequence[SuspectGroup]) -> list[SuspectGroup]:
        """Ranks that go round in one function are met at any of its lines: they stand at one
        place, the first one's.
        """
        places: dict[str, str] = {}
        told = []
        for group in groups:
            standing = next(
                (one for one in self.ranks if len(group.ranks) == 1 and one.rank == group.ranks[0]),
                None,
            )
            if (
                standing is not None
                and standing.where
                and self.live.activity(Node("rank", str(standing.rank))).kind in ("polls", "spins")
            ):
                first = places.setdefault(
                    re.sub(r":\d+ in ", " in ", standing.where), standing.where
                )
                group = replace(group, says=group.says.replace(standing.where, first))  # noqa: PLW2901 # the same group, told alike
            told.append(group)
        return told

    def _with_chain(self, group: SuspectGroup, end: Sequence[Node]) -> SuspectGroup:
        start = (
            Node("rank", str((group.victims or group.ranks)[0]))
            if group.victims or group.ranks
            else None
        )
        if start is None or (group.how == "cycle" and group.chain):
            return group
        chain = self.graph.chain(start, end)
        if (
            group.victims and group.how != "cycle"
        ):  # by way of the suspects, where the shortest way would miss them
            through = self.graph.chain(start, [Node("rank", str(rank)) for rank in group.ranks])
            on = self.graph.chain(through[-1].awaited, end) if through else ()
            chain = (*through, *on) if through else chain
            last = chain[-1].awaited if chain else start
            if last.kind == "process" and last in end and len(end) > 1:  # round to where it began
                chain += self.graph.chain(last, [node for node in end if node in self.by_node])
        links = [
            Link(
                self._say(wait.waiter, group.victims),
                self._say(wait.awaited, ()),
                wait.how,
                wait.evidence,
            )
            for wait in chain
        ]
        last = chain[-1].awaited if chain else start
        activity = self.live.activity(last)
        if links and activity.says and last.kind in ("rank", "process"):
            links[-1] = replace(links[-1], awaited=f"{links[-1].awaited}, which {activity.says}")
        return replace(group, chain=tuple(links))

    def _say(self, node: Node, folded: Sequence[int]) -> str:
        if node.kind == "rank" and len(folded) > 1 and node.key == str(folded[0]):
            same = [rank for rank in folded if self._meets(rank) == self._meets(folded[0])]
            return ranks_say(sorted(same))
        return self.edges.say(node)

    def _meets(self, rank: int) -> tuple[str, ...]:
        return tuple(str(wait.awaited) for wait in self.graph.waits_of(Node("rank", str(rank))))

    def _said(self, group: SuspectGroup) -> SuspectGroup:
        """The group's sentence, with what /proc and the looks say of its first rank."""
        if not group.ranks:
            return group
        first = next(standing for standing in self.ranks if standing.rank == group.ranks[0])
        who, rest = ranks_say(group.ranks), " while the others wait" if group.victims else ""
        if first.state == "unseen" and first.pid is None:
            says = (
                f"{who} of {self.job.world_size or len(self.ranks)}"
                f" {'has' if len(group.ranks) == 1 else 'have'} {nowhere(self.job)}{rest}"
            )
            return replace(group, how="not-visible", says=says)
        if first.state in ("stopped", "blocked", "exited"):
            word = {"stopped": "stopped", "blocked": "blocked in the kernel", "exited": "ended"}[
                first.state
            ]
            be = (
                ("is" if first.state != "exited" else "has")
                if len(group.ranks) == 1
                else ("are" if first.state != "exited" else "have")
            )
            place = f" at {first.where}" if first.where else ""
            return replace(group, says=f"{who} {be} {word}{place}{rest}")
        if self.job.elsewhere and group.how == "stuck-inside":
            return replace(
                group,
                says=(
                    f"all ranks of {'the hosts that answered' if self.job.hosts else 'this host'}"
                    f" are inside {first.meeting} and wait there for ranks on other hosts"
                ),
            )
        return group
