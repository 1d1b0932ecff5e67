"""Runs cells over several nodes: a probe of the host on each node in parallel, ranks across all
nodes that a cell needs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainprobe.case import Case
from trainprobe.ladder import probe_cell, script_cell
from trainprobe.ladder.cell_record import merged
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.deadlines import Deadlines
from trainprobe.ladder.knobs import Turn
from trainprobe.ladder.node_cell import NodeLostError, RemoteCell
from trainprobe.ladder.node_team import RemoteNode, Team, names_of
from trainprobe.ladder.outcome import Result, of_script, skipped
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.plan import Plan, Rung
from trainprobe.ladder.policy import Decision
from trainprobe.ladder.probes import USER_SCRIPT
from trainprobe.ladder.resource_use import EVERY_S
from trainprobe.ladder.running import FAILED, Runner
from trainprobe.ladder.thresholds import held_against
from trainprobe.ladder.wire import CellAsked, PartOver
from trainprobe.model.node_names import folded
from trainprobe.model.progress import Progress
from trainprobe.model.subjects import JOB
from trainprobe.system.interruption import Interruption
from trainprobe.targets.launch import Part, free_port

# a node ends its part so long after its deadline at the latest, whoever is still there to ask
OVER_S = 60.0


class NodesRunner(Runner):
    """One cell after the other, on nodes."""

    def __init__(
        self, plan: Plan, case: Case, progress: Progress, pace: Pace, interruption: Interruption
    ) -> None:
        super().__init__(plan, case, progress, pace, interruption)
        self.team = Team(plan, case, progress, interruption)

    def open(self) -> None:
        """Reach the nodes."""
        self.team.open()

    def close(self) -> None:
        """Leave them."""
        self.team.close()

    # ---- a probe of the host, on each node

    def run_hosts(self, rung: Rung) -> None:
        """Run it on all nodes at once; each has a cell of its own. Nodes with the same result share
        one line on the screen.
        """
        cells = {node.name: Cell(1, host=node.name) for node in self.team.nodes}
        waiting = [node for node in self.team.nodes if rung.name(cells[node.name]) not in self.done]
        overs = [self.over(rung, cells[node.name]) for node in waiting]
        if all(overs):
            return
        _, deadline_s = self._pace_and_deadline(rung, None)
        shown = f"{rung.spec.name}@{folded(names_of(waiting))}"
        self.progress.cell_began(rung.spec.name, shown, 1, rung.spec.question, deadline_s)
        began = time.time()
        for node in waiting:
            if not node.lost:
                cell, part, ends_s = cells[node.name], Part(1, 1, 0), deadline_s + OVER_S
                node.ask(CellAsked(rung, cell, part, self.pace, deadline_s, ends_s, alone=True))
        took = self._until_over(waiting, deadline_s + OVER_S)
        outcomes: dict[tuple[str, str], list[str]] = {}
        for node in waiting:
            result = self._of_host(rung, node, deadline_s)
            cell, took_s = cells[node.name], took.get(node.name, 0.0)
            self._write(rung, cell, result, began, took_s, deadline_s, announced=False)
            outcomes.setdefault((result.outcome, result.reason), []).append(node.name)
        for (outcome, says), names in outcomes.items():
            longest_s = max((took.get(name, 0.0) for name in names), default=0.0)
            name = f"{rung.spec.name}@{folded(names)}"
            self.progress.cell_ended(rung.spec.name, name, outcome, longest_s, says)
        if self.interruption.asked:
            self._record_interruption(rung, shown)

    def _until_over(self, waiting: Sequence[RemoteNode], most_s: float) -> dict[str, float]:
        """Wait for the nodes to end their parts by themselves; return how long each took, by name,
        in seconds.
        """
        clock, took, stopping = time.monotonic(), {}, False
        while open_ := [node for node in waiting if not node.lost and node.over is None]:
            self.team.pump(0.05)
            elapsed_s, stop = time.monotonic() - clock, self.interruption.asked and not stopping
            for node in open_:
                if node.over is not None or node.lost:
                    took[node.name] = elapsed_s
                elif elapsed_s > most_s:
                    why = f"{node.name} did not end its part within {most_s:.0f} s"
                    self.team.lose(node, why, late=True)
                elif stop:
                    node.tell(do="stop")
            stopping = stopping or stop
        return took

    def _of_host(self, rung: Rung, node: RemoteNode, deadline_s: float) -> Result:
        more: dict[str, Any] = {"hosts": [node.name], "host": node.name}
        if node.over is None:
            return self._without(node, rung.name(Cell(1, host=node.name)), [node], more)
        record = node.over.record
        result = probe_cell.result_of(record.answers, record.measures, record.bad_lines, deadline_s)
        result = held_against(result, rung.spec.name, self.plan.thresholds)
        if self.interruption.asked and result.outcome == "timed_out":
            more["unmet"] = "interrupted"
            result = Result("not_measured", "it was interrupted", (), result.more)
        return _with_trouble(replace(result, more={**result.more, **more}), [node.over])

    def _without(
        self, node: RemoteNode, name: str, lost: Sequence[RemoteNode], more: dict[str, Any]
    ) -> Result:
        """A cell that cannot run because a node does not answer. Its first cell reports that; later
        ones are skipped.
        """
        news = [item for item in lost if not item.lost_recorded]
        for new in news:
            self.team.record_lost(new, name)
        says = "; ".join(item.lost for item in news or [node])
        if not news:
            return skipped("lower-rung:node", says, more)
        return Result("timed_out" if any(item.late for item in news) else "crashed", says, (), more)

    # ---- ranks across nodes

    def run(
        self,
        rung: Rung,
        cell: Cell,
        *,
        largest: bool,
        by: Deadlines | None = None,
        turn: Turn | None = None,
    ) -> Result:
        """Run one cell with its ranks across as many nodes as it needs, the first ones, and record
        everything.
        """
        del turn  # knobs are changed on one machine
        of_script, name = rung.spec.name == USER_SCRIPT, rung.name(cell)
        pace, deadline_s = self._pace_and_deadline(rung, by)
        nodes = self.team.nodes[: max(1, cell.nproc // self.plan.nproc)]
        self.progress.cell_began(rung.spec.name, name, cell.nproc, rung.spec.question, deadline_s)
        began, clock = time.time(), time.monotonic()
        more: dict[str, Any] = {"hosts": list(names_of(nodes))}
        lost = [node for node in nodes if node.lost]
        if lost:
            result = self._without(lost[0], name, lost, more)
            failed = replace(result, ranks=_ranks_on(lost, self.plan.nproc))
            self._write(rung, cell, failed, began, 0.0, deadline_s)
            return result
        hard_s = self.left_s()
        remote = self._started(nodes, rung, cell, pace, deadline_s, hard_s)
        if of_script:
            result, parts = self._of_script(remote, largest=largest, hard_s=hard_s)
        else:
            result, parts = self._of_probe(remote, deadline_s)
        result = held_against(result, rung.spec.name, self.plan.thresholds)
        for node in remote.lost:
            self.team.record_lost(node, name)
        result = _with_trouble(result, parts) if not remote.lost else result
        if not remote.lost or result.outcome != "timed_out":
            result = self._when_interrupted(result, rung, name)
        if of_script:
            more["switched_on"] = dict(parts[0].switched_on) if parts else {}
            more["left_alone"] = list(parts[0].left_alone) if parts else []
            if by is not None:
                more["deadlines"] = by.row()
            measures = list(merged([part.record for part in parts]).measures)
            data = {"measures": measures, "samples": 0, "sampled_every_s": EVERY_S}
            self.case.add("cell.measures", subject=JOB, cell=name, source="ladder", data=data)
            result = self._too_few_rows(result, rung, cell)
        result = replace(result, more={**result.more, **more})
        self._write(rung, cell, result, began, time.monotonic() - clock, deadline_s)
        return result

    def _started(
        self,
        nodes: Sequence[RemoteNode],
        rung: Rung,
        cell: Cell,
        pace: Pace,
        deadline_s: float,
        hard_s: float,
    ) -> RemoteCell:
        """The ranks meet at the first node, at a port that was free there a moment ago; on one
        node alone, at its loopback.
        """
        names, each = names_of(nodes), self.plan.nproc
        addr = names[0].rpartition("@")[2] if len(nodes) > 1 else "127.0.0.1"
        port = nodes[0].port or free_port()
        ends_s = min(deadline_s, hard_s) + OVER_S
        for place, node in enumerate(nodes):
            part = Part(each, each * len(nodes), port, each * place, place, len(nodes), addr, names)
            node.ask(CellAsked(rung, cell, part, pace, deadline_s, ends_s))
        return RemoteCell(self.team, nodes, pace, self.interruption)

    def _of_probe(self, remote: RemoteCell, deadline_s: float) -> tuple[Result, list[PartOver]]:
        missed = False
        try:
            missed = probe_cell.follow(remote, deadline_s)
            if remote.running() and not self.interruption.asked:
                remote.look()
        except NodeLostError:
            remote.look()
        remote.end(missed=missed)
        parts = remote.parts(probe=True)
        records = [part.record for part in parts]
        rows = [row for item in records for row in item.measures]
        result = probe_cell.result_of(
            [answer for item in records for answer in item.answers],
            rows,
            sum(item.bad_lines for item in records),
            deadline_s,
        )
        return self._when_lost(result, remote), parts

    def _of_script(
        self, remote: RemoteCell, *, largest: bool, hard_s: float
    ) -> tuple[Result, list[PartOver]]:
        try:
            decision, now, clear = script_cell.follow(remote, largest=largest, hard_s=hard_s)
        except NodeLostError:
            now = remote.now()
            remote.look()
            decision, clear = Decision("look", "stall"), True
        remote.end()
        parts = remote.parts(probe=False)
        record = merged([part.record for part in parts])
        result = script_cell.concluded(remote, record, decision, now, clear=clear, hard_s=hard_s)
        if (
            remote.lost
            and of_script(record.endings, record.launcher, command=record.command) is None
        ):
            result = replace(result, outcome="timed_out")
        return self._when_lost(result, remote), parts

    def _when_lost(self, result: Result, remote: RemoteCell) -> Result:
        """The ranks of a node that fell silent did not pass, whatever the others still report."""
        if not remote.lost or result.outcome in ("failed", "crashed"):
            return result
        says = "; ".join(node.lost for node in remote.lost)
        ranks = _ranks_on(remote.lost, self.plan.nproc)
        return replace(result, outcome="timed_out", says=says, ranks=ranks, tells_all=True)


def _ranks_on(nodes: Sequence[RemoteNode], each: int) -> tuple[int, ...]:
    return tuple(
        rank for node in nodes for rank in range(node.place * each, (node.place + 1) * each)
    )


def _with_trouble(result: Result, parts: Sequence[PartOver]) -> Result:
    trouble = next((part.trouble for part in parts if part.trouble), "")
    if not trouble or result.outcome in FAILED:
        return result
    return replace(result, outcome="not_measured", says=trouble)
