"""The nodes of a climb: one conversation with each for the whole climb, their records in the case,
and which of them have fallen silent.
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
# Once most have begun, the rest get this multiple of the slowest one's time, at least so long.
BEHIND, LEAST_BEHIND_S = 2.0, 5.0
# A node sends something every second; a host that swaps or is shared may be late.
SILENT_S = 10.0
CLOSE_S = 5.0


class RemoteNode:
    """One node. `lost` is the reason why it dropped out, empty while it takes part; `late` means
    that it fell silent without a reason.
    """

    def __init__(self, name: str, place: int, conversation: Conversation) -> None:
        self.name, self.place, self.conversation = name, place, conversation
        self.begun, self.lost, self.late = False, "", False
        self.lost_recorded = False
        self.skew_s, self.port, self.took_s = 0.0, 0, 0.0
        self.records = 0
        self.asked: CellAsked | None = None
        self.started_at: float | None = None  # by time.monotonic()
        self.snapshot: Snapshot | None = None
        self.looks: list[ProcessLook] | None = None
        self.over: PartOver | None = None

    def ask(self, asked: CellAsked) -> None:
        """Start a part of a cell there."""
        self.asked, self.records = asked, 0
        self.started_at = self.snapshot = self.looks = self.over = None
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
        """Begin a conversation with every node, and wait until each has begun or failed to."""
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
            times = [node.took_s for node in self.nodes if node.begun]
            if 2 * len(times) >= len(self.nodes):
                until = min(until, began + max(BEHIND * max(times), max(times) + LEAST_BEHIND_S))
            if time.monotonic() > until:
                for node in waiting:
                    self.lose(node, f"{node.name} did not answer within {took_s:.0f} s", late=True)
        self.progress.note("")

    def close(self) -> None:
        """End all conversations; what runs on the nodes ends with them."""
        for node in self.nodes:
            node.conversation.hang_up()
        for node in self.nodes:
            node.conversation.close(0.0 if node.lost else CLOSE_S)

    def pump(self, timeout_s: float) -> None:
        """Wait for news of any node, at most `timeout_s`, and process it."""
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
            for row in map(row_of, node.conversation.lines()):
                if row is not None:  # a login shell may print a banner
                    self._hear(node, row)
            if node.conversation.over and not node.lost:
                self.lose(node, f"{node.name} has dropped out: {node.conversation.trouble}")
            elif node.begun and time.monotonic() - node.conversation.heard_at > SILENT_S:
                self.lose(node, f"{node.name} has been silent for {SILENT_S:.0f} s", late=True)

    def lose(self, node: RemoteNode, why: str, *, late: bool = False) -> None:
        """Mark a node as dropped out."""
        node.lost, node.late = clean(why), late

    def record_lost(self, node: RemoteNode, cell: str) -> None:
        """Record once that a node does not answer."""
        if node.lost_recorded:
            return
        node.lost_recorded = True
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

    # ---- messages from a node

    def _hear(self, node: RemoteNode, row: Mapping[str, Any]) -> None:
        if "record" in row:
            self._keep(node, row["record"])
            return
        says = row.get("says")
        of_cell = node.asked is not None and row.get("cell") == node.asked.name
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
        """Put a record into the case, only as one of this node and of the requested cell."""
        if node.asked is None or not isinstance(row, dict):
            return
        node.records += 1
        record = record_of(row, Accept(KINDS, node.asked.name, ""))
        if record is None or node.records > MOST_RECORDS:
            return
        part, rank = node.asked.part, record.subject.rank
        if rank is not None and not part.first <= rank < part.first + part.nproc:
            return
        record = at_host(record, node.name, node.skew_s)
        data = dict(record.data)
        if node.skew_s and record.kind == "rank.ended":
            for name in ("at", "started_at"):
                if (at := moment(data.get(name))) is not None:
                    data[name] = at - node.skew_s
        self.case.keep(record, took_s=max(0.0, record.took_s), data=data)


def names_of(nodes: Sequence[RemoteNode]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)
