"""One cell whose processes run on several nodes: it merges their parts, so that the cell is judged
like a local one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from trainprobe.collect.thread_history import CellLooks
from trainprobe.ladder.node_team import RemoteNode, Team
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.policy import Now, RankNow
from trainprobe.ladder.wire import PartOver, RemoteProcess, Snapshot, own_ranks, record_of_lost_part
from trainprobe.system.interruption import Interruption

TICK_S = 0.05
LOOK_S = 25.0  # three looks at some ranks, and py-spy on a busy host
OVER_S = 40.0  # to stop everything and write it down


class NodeLostError(Exception):
    """A node of the running cell has dropped out."""


class RemoteCell:
    """The started parts of one cell. Moments are seconds since it was started; `quiet_s` is as
    in Watch.
    """

    def __init__(
        self, team: Team, nodes: Sequence[RemoteNode], pace: Pace, interruption: Interruption
    ) -> None:
        self.team, self.nodes, self.pace, self.interruption = team, nodes, pace, interruption
        self.quiet_s = 0.0
        self._sign_at = 0.0
        self._clock = time.monotonic()
        self._looked_at: float | None = None
        self._number = 0
        self._ended = False

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._clock

    @property
    def lost(self) -> list[RemoteNode]:
        return [node for node in self.nodes if node.lost]

    def tick(self) -> None:
        """Take in what the nodes say. Raises NodeLostError when one of them has fallen silent."""
        self.team.pump(TICK_S)
        if self.lost and not self._ended:
            raise NodeLostError

    def running(self) -> bool:
        return any(self._snapshot(node).running for node in self.nodes if node.over is None)

    def stopped_for_s(self) -> float:
        return max((self._snapshot(node).stopped_for_s for node in self.nodes), default=0.0)

    def answer_failed(self) -> bool:
        return any(self._snapshot(node).failed for node in self.nodes)

    def now(self) -> Now:
        """What the policy needs, of all ranks together."""
        parts = [self._snapshot(node) for node in self.nodes]
        ranks = [rank for part in parts for rank in part.ranks]
        for node, part in zip(self.nodes, parts, strict=True):
            # A launcher that has started no rank yet counts as its first rank.
            if not part.ranks and part.running and node.asked is not None:
                ranks.append(RankNow(node.asked.part.first))
        sign_at = max((part.sign_at for part in parts), default=0.0)
        if self._sign_at:
            self.quiet_s = max(self.quiet_s, sign_at - self._sign_at)
        self._sign_at = sign_at
        failed = [part.launcher_failed_at for part in parts if part.launcher_failed_at is not None]
        return Now(
            at=self.elapsed_s,
            running=any(part.running for part in parts),
            ranks=sorted(ranks, key=lambda rank: rank.rank),
            sign_at=sign_at,
            looked_at=self._looked_at,
            launcher_failed_at=min(failed, default=None),
        )

    def look(self) -> CellLooks:
        """Look at every process, on all nodes at once."""
        running = [
            node
            for node in self.nodes
            if not node.lost and node.over is None and self._snapshot(node).running
        ]
        for node in running:
            node.looks = None
            node.tell(do="look")
        self._wait(
            lambda: all(node.looks is not None or node.over or node.lost for node in running),
            LOOK_S,
        )
        seen = [RemoteProcess(item, node.place) for node in running for item in node.looks or ()]
        self._number += 1
        self._looked_at = self.elapsed_s
        ranks = {
            each.member.rank: each
            for each in seen
            if each.member.role == "rank" and each.member.rank is not None
        }
        workers = tuple(each for each in seen if each.member.role == "loader-worker")
        return CellLooks(dict(ranks), workers, self._number)

    def end(self, *, missed: bool = False) -> None:
        """End and record all parts. A node that does not end its part is lost."""
        self._ended = True
        for node in self.nodes:
            if node.over is None and not node.lost:
                node.tell(do="end", missed=missed)
        self._wait(lambda: all(node.over is not None or node.lost for node in self.nodes), OVER_S)
        for node in self.nodes:
            if node.over is None and not node.lost:
                why = f"{node.name} did not end its part within {OVER_S:.0f} s"
                self.team.lose(node, why, late=True)

    def parts(self, *, probe: bool) -> list[PartOver]:
        """What each node reported at the end; the ranks of a node that reported nothing were not
        seen to end.
        """
        found = []
        for node in self.nodes:
            if node.asked is None:
                continue
            part, over = node.asked.part, node.over
            if over is None:
                record = record_of_lost_part(part, node.lost or "it was never started", probe=probe)
                found.append(PartOver(record, trouble=node.lost))
            else:
                found.append(replace(over, record=own_ranks(over.record, part)))
        return found

    def _wait(self, done: Callable[[], bool], most_s: float) -> None:
        until = time.monotonic() + most_s
        while not done() and time.monotonic() < until:
            self.team.pump(TICK_S)

    def _snapshot(self, node: RemoteNode) -> Snapshot:
        """The newest snapshot of a node, by the clock of the cell; a node without one counts as
        running.
        """
        if node.snapshot is None or node.started_at is None:
            return Snapshot(running=node.over is None and not node.lost)
        if node.over is not None or node.lost:
            return Snapshot(running=False)
        return node.snapshot.later(node.started_at - self._clock)
