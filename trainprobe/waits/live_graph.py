"""The ranks of a live job with the graph of their waits, and what each node of it does."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import Facts, Job, ProcessState, Rung
from trainprobe.model.waits import Node
from trainprobe.stacks.servers import asked_by_ranks_alone
from trainprobe.waits.activity import Activity, Watch
from trainprobe.waits.edges import Edges
from trainprobe.waits.graph import Graph
from trainprobe.waits.servers import is_server
from trainprobe.waits.standings import Standing


class LiveGraph:
    """One job: its `ranks` as they stand, what was watched of its processes, and who waits for
    whom.
    """

    def __init__(
        self, facts: Facts, job: Job, rung: Rung, ranks: tuple[Standing, ...], watch: Watch
    ) -> None:
        self.facts, self.job, self.rung, self.ranks, self.watch = facts, job, rung, ranks, watch
        self.edges = Edges(facts, job.cell, ranks, watch)
        self.graph: Graph = self.edges.graph()
        self.by_node = {Node("rank", str(standing.rank)): standing for standing in ranks}

    def activity(self, node: Node) -> Activity:
        pid = self.pid_of(node)
        return self.watch.activity(pid) if pid is not None else Activity("unseen")

    def pid_of(self, node: Node) -> int | None:
        standing = self.by_node.get(node)
        return standing.pid if standing is not None else self.edges.pid_of(node)

    def has_failed(self, node: Node) -> bool:
        """Is it a rank that died? Who waits for that one waits for ever, however short the time."""
        standing = self.by_node.get(node)
        return standing is not None and standing.ending is not None and standing.ending.abnormal

    def is_server(self, node: Node) -> bool:
        standing = self.by_node.get(node)
        return (
            standing is not None
            and self.activity(node).kind not in ("stopped", "blocked")
            and is_server(standing)
            and not self._is_missed(node, standing)
        )

    def _is_missed(self, node: Node, standing: Standing) -> bool:
        """Whether a collective of others waits for it, and all who could ask it for something wait
        for it too.
        """
        return (
            standing.thread is not None
            and asked_by_ranks_alone(standing.thread.frames)
            and any(waiter.kind == "collective" for waiter in self.graph.waiters_of(node))
            and len(self.victims([node])) == len(self.ranks) - 1
        )

    def victims(self, end: Sequence[Node]) -> list[Standing]:
        """The ranks that wait for this end, for themselves or behind others."""
        return [self.by_node[node] for node in self.graph.reaches(end) if node in self.by_node]

    def toiling(self, end: Sequence[Node]) -> tuple[ProcessState, bool] | None:
        """The worker that one rank of this end waits for, if all other ranks wait for that rank."""
        ranks, others = [one for node in end if (one := self.by_node.get(node))], self.victims(end)
        if len(ranks) + len(others) < len(self.ranks):
            return None
        pids = [one.pid for one in ranks or others]
        found = [self.watch.toiling_worker(pid) for pid in pids if pid is not None]
        return next((one for one in found if one is not None), None)

    def waiters(
        self, works: Sequence[tuple[Node, ...]]
    ) -> dict[int, tuple[tuple[int, ...], float]]:
        """For each working rank that others wait for: who, and the longest of their waits in
        seconds.
        """
        found = {}
        for end in works:
            victims = self.victims(end)
            ranks = [self.by_node[node].rank for node in end if node in self.by_node]
            if victims and len(ranks) == 1:
                found[ranks[0]] = (
                    tuple(sorted(one.rank for one in victims)),
                    max((one.since_s or 0.0 for one in victims), default=0.0),
                )
        return found

    def looked_s(self, end: Sequence[Node]) -> float:
        standing = self.by_node.get(end[0])
        return (
            standing.process.looked_s or 0.0
            if standing is not None and standing.process is not None
            else 0.0
        )
