"""The nodes of a climb: one conversation with each for the whole climb, what they send put into
the case, and who of them has fallen silent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainprobe.case import Case
from trainprobe.ladder.plan import Plan
from trainprobe.ladder.wire import (
    KINDS,
    PING_S,
    SCHEMA,
    CellAsked,
    PartOver,
    ProcessLook,
    Snapshot,
    line,
    plan_for_nodes,
    read,
)
from trainprobe.model.progress import Progress
from trainprobe.model.subjects import Subject
from trainprobe.nodes.answers import MOST_RECORDS, Accept, at_host, moment, record_of, row_of
from trainprobe.nodes.fan_out import SKEW_S
from trainprobe.redact import clean
from trainprobe.system.conversation import Conversation, wait_for
from trainprobe.system.interruption import Interruption

KIND = "node.look"
START_S = 20.0  # for the way to a node, and a Python on a cold file system there
# once most have begun, the rest get so many times what the slowest of those took, and at least so
# long
BEHIND, LEAST_BEHIND_S = (
    2.0,
    5.0,
)
# a node says something every second; a host that swaps or that we share with others may be late
SILENT_S = 10.0
CLOSE_S = 5.0


class RemoteNode:
    """One node. `lost` says why it takes no part any more, empty while it does; `late` that it
    is silent, and did not say why itself.
    """

    def __init__(self, name: str, place: int, conversation: Conversation) -> None:
        self.name, self.place, self.conversation = name, place, conversation
        self.begun, self.lost, self.late = False, "", False
        self.told_lost = False
        self.skew_s, self.port, self.took_s = 0.0, 0, 0.0
        self.records = 0
        self.asked: CellAsked | None = None
        self.started_at: float | None = None  # by time.monotonic()
        self.snapshot: Snapshot | None = None
        self.looks: list[ProcessLook] | None = None
        self.over: PartOver | None = None

    def ask(self, asked: CellAsked) -> None:
        """Start a part of a cell there."""
        self.asked, self.started_at, self.snapshot, self.looks, self.over, self.records = (
            asked,
            None,
            None,
            None,
            None,
            0,
        )
        self.tell(do="cell", cell=asked)

    def tell(self, **order: Any) -> None:
        self.conversation.tell(line(**order))


class Team:
    """All nodes of one climb."""

    def __init__(
        self, plan: Plan, case: Case, progress: Progress, interruption: Interruption
    ) -> None:
        self.plan, self.case, self.progress, self.interruption = plan, case, progress, interruption
        self.nodes: list[RemoteNode] = []
        self._pinged_at = 0.0

    def open(self) -> None:
        """Begin a conversation with every node, and wait until each has begun, or is known not
        to.
        """
        if self.plan.way is None:
            return
        self.progress.note(f"Starting on {len(self.plan.nodes)} nodes.")
        hello = line(schema=SCHEMA, do="hello", plan=plan_for_nodes(self.plan))
        began = time.monotonic()
        for place, name in enumerate(self.plan.nodes):
            ask = self.plan.way.node(name, ("climb-here",), hello + b"\n", held=True)
            self.nodes.append(RemoteNode(name, place, Conversation(ask.argv, ask.env)))
            self.nodes[-1].conversation.send(ask.said)
        until = began + START_S
        while (
            waiting := [node for node in self.nodes if not node.begun and not node.lost]
        ) and not self.interruption.asked:
            self.pump(0.1)
            took_s = time.monotonic() - began
            for node in self.nodes:
                node.took_s = node.took_s or (took_s if node.begun else 0.0)
            there = [node.took_s for node in self.nodes if node.begun]
            if 2 * len(there) >= len(self.nodes):
                until = min(until, began + max(BEHIND * max(there), max(there) + LEAST_BEHIND_S))
            if time.monotonic() > until:
                for node in waiting:
                    self.lose(node, f"{node.name} did not answer within {took_s:.0f} s", late=True)
        self.progress.note("")

    def close(self) -> None:
        """Hang up everywhere; what runs there ends with it."""
        for node in self.nodes:
            node.conversation.hang_up()
        for node in self.nodes:
            node.conversation.close(0.0 if node.lost else CLOSE_S)

    def pump(self, timeout_s: float) -> None:
        """Wait for news of anybody, at most `timeout_s`, and take it in."""
        wait_for([node.conversation for node in self.nodes if not node.lost], timeout_s)
        now = time.monotonic()
        if now - self._pinged_at >= PING_S:
            self._pinged_at = now
            for node in self.nodes:
                if not node.lost:
                    node.tell(do="ping")
        for node in self.nodes:
            if node.lost:
                continue
            for said in node.conversation.lines():
                self._hear(node, said)
            if node.conversation.over and not node.lost:
                self.lose(node, f"{node.name} has dropped out: {node.conversation.trouble}")
            elif node.begun and time.monotonic() - node.conversation.heard_at > SILENT_S:
                self.lose(node, f"{node.name} has said nothing for {SILENT_S:.0f} s", late=True)

    def lose(self, node: RemoteNode, why: str, *, late: bool = False) -> None:
        """A node that takes no part any more."""
        node.lost, node.late = clean(why), late

    def keep_lost(self, node: RemoteNode, cell: str) -> None:
        """Write down that a node gives no answer, once."""
        if node.told_lost:
            return
        node.told_lost = True
        way = self.plan.way.by if self.plan.way is not None else ""
        self.case.add(
            KIND,
            subject=Subject("host", host=node.name),
            cell=cell,
            source=way,
            outcome="timed_out" if node.late else "unavailable",
            reason=node.lost,
            data={"command": os.path.basename(node.conversation.argv[0])},
        )

    # ---- what a node says

    def _hear(self, node: RemoteNode, said: bytes) -> None:
        row = row_of(said)
        if row is None:  # a banner of the login shell
            return
        if "record" in row:
            self._keep(node, row["record"])
            return
        says, of_cell = (
            row.get("says"),
            node.asked is not None and row.get("cell") == node.asked.name,
        )
        if says == "begin":
            now = moment(row.get("now"))
            skew_s = now - time.time() if now is not None else 0.0
            node.begun, node.skew_s = True, skew_s if abs(skew_s) > SKEW_S else 0.0
        elif says == "trouble":
            reason = row.get("reason")
            self.lose(node, f"{node.name} cannot take part: {str(reason)[:300]}")
        elif says == "started" and of_cell:
            node.started_at = time.monotonic()
        elif says == "now" and of_cell:
            node.snapshot = self._snapshot(node, row)
        elif says == "looked" and of_cell and isinstance(row.get("seen"), list):
            node.looks = [
                item for each in row["seen"][:4096] if (item := read(ProcessLook, each)) is not None
            ]
        elif says == "over" and of_cell:
            node.over = read(PartOver, row.get("part")) or PartOver(
                trouble=f"{node.name} reported the end of its part in an unknown format"
            )
        port = row.get("port")
        if isinstance(port, int) and 0 < port < 65536:
            node.port = port

    @staticmethod
    def _snapshot(node: RemoteNode, row: Mapping[str, Any]) -> Snapshot | None:
        found = read(Snapshot, row.get("now"))
        if found is None or node.asked is None:
            return node.snapshot
        part = node.asked.part
        mine = range(part.first, part.first + part.nproc)
        return replace(found, ranks=tuple(rank for rank in found.ranks if rank.rank in mine))

    def _keep(self, node: RemoteNode, row: Any) -> None:
        """Put a record into the case as one of this node and of the cell that it was asked for,
        and of no other.
        """
        if node.asked is None or not isinstance(row, dict):
            return
        node.records += 1
        record = (
            record_of(row, Accept(KINDS, node.asked.name, ""))
            if node.records <= MOST_RECORDS
            else None
        )
        if record is None:
            return
        part, rank = node.asked.part, record.subject.rank
        if rank is not None and not part.first <= rank < part.first + part.nproc:
            return
        record = at_host(record, node.name, node.skew_s)
        data = dict(record.data)
        if node.skew_s and record.kind == "rank.ended":
            data.update(
                {
                    name: at - node.skew_s
                    for name in ("at", "started_at")
                    if (at := moment(data.get(name))) is not None
                }
            )
        self.case.keep(record, took_s=max(0.0, record.took_s), data=data)


def names_of(nodes: Sequence[RemoteNode]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)
