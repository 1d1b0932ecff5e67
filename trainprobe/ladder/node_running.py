"""Runs cells over several nodes: a probe of the host on each of them side by side, ranks across
all that a cell is for.
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
from trainprobe.ladder.outcome import Result, of_script
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
        """Run it on all nodes at once; each has a cell of its own. Nodes that come out alike are
        told in one line.
        """
        cells = {node.name: Cell(1, host=node.name) for node in self.team.nodes}
        waiting = [node for node in self.team.nodes if rung.name(cells[node.name]) not in self.done]
        overs = [self.over(rung, cells[node.name]) for node in waiting]
        if all(overs):
            return
        deadline_s = min(
            self.left_s(), self.plan.deadlines_s.get(rung.spec.name, rung.spec.timeout_s)
        )
        shown = f"{rung.spec.name}@{folded(names_of(waiting))}"
        self.progress.cell_began(rung.spec.name, shown, 1, rung.spec.question, deadline_s)
        began = time.time()
        for node in waiting:
            if not node.lost:
                node.ask(
                    CellAsked(
                        rung,
                        cells[node.name],
                        Part(1, 1, 0),
                        self.pace,
                        deadline_s,
                        deadline_s + OVER_S,
                        alone=True,
                    )
                )
        took = self._until_over(waiting, deadline_s + OVER_S)
        outcomes: dict[tuple[str, str], list[str]] = {}
        for node in waiting:
            result = self._of_host(rung, node, deadline_s)
            self._write(
                rung,
                cells[node.name],
                result,
                began,
                took.get(node.name, 0.0),
                deadline_s,
                announced=False,
            )
            outcomes.setdefault(
                (result.outcome, result.says or str(result.more.get("skipped_because", ""))), []
            ).append(node.name)
        for (outcome, says), names in outcomes.items():
            longest_s = max((took.get(name, 0.0) for name in names), default=0.0)
            self.progress.cell_ended(
                rung.spec.name, f"{rung.spec.name}@{folded(names)}", outcome, longest_s, says
            )
        if self.interruption.asked:
            self.case.add(
                "interrupted",
                subject=JOB,
                cell=shown,
                source="signal",
                data={"phase": rung.spec.name, "cell": shown},
            )

    def _until_over(self, waiting: Sequence[RemoteNode], most_s: float) -> dict[str, float]:
        """Wait for the end of their parts, which they find themselves; return how long each
        took, by name, in seconds.
        """
        clock, took, told_to_stop = time.monotonic(), {}, False
        while open_ := [node for node in waiting if not node.lost and node.over is None]:
            self.team.pump(0.05)
            elapsed_s, stop = time.monotonic() - clock, self.interruption.asked and not told_to_stop
            for node in open_:
                if node.over is not None or node.lost:
                    took[node.name] = elapsed_s
                elif elapsed_s > most_s:
                    self.team.lose(
                        node, f"{node.name} did not end its part within {most_s:.0f} s", late=True
                    )
                elif stop:
                    node.tell(do="stop")
            told_to_stop = told_to_stop or stop
        return took

    def _of_host(self, rung: Rung, node: RemoteNode, deadline_s: float) -> Result:
        more: dict[str, Any] = {"hosts": [node.name], "host": node.name}
        if node.over is None:
            return self._without(node, rung.name(Cell(1, host=node.name)), [node], more)
        record = node.over.record
        result = probe_cell.result_of(record.answers, record.measures, record.bad_lines, deadline_s)
        result = held_against(result, rung.spec.name, self.plan.thresholds)
        if self.interruption.asked and result.outcome == "timed_out":
            result = Result(
                "not_measured", "it was interrupted", (), {**result.more, "unmet": "interrupted"}
            )
        return _with_trouble(replace(result, more={**result.more, **more}), [node.over])

    def _without(
        self, node: RemoteNode, name: str, lost: Sequence[RemoteNode], more: dict[str, Any]
    ) -> Result:
        """A cell that could not be run because a node gives no answer: the first one tells it,
        the others mean nothing.
        """
        news = [item for item in lost if not item.told_lost]
        for new in news:
            self.team.keep_lost(new, name)
        says = "; ".join(item.lost for item in news or [node])
        if not news:
            return Result(
                "skipped", "", (), {**more, "unmet": "lower-rung:node", "skipped_because": says}
            )
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
        """Run one cell with its ranks across as many nodes as it needs, the first ones, and
        write everything down.
        """
        del turn  # knobs are changed on one machine
        of_script, name = rung.spec.name == USER_SCRIPT, rung.name(cell)
        pace = by.pace(self.pace) if by is not None else self.pace
        usual_s = (
            pace.run_s + pace.stall_s
            if of_script or by is not None
            else self.plan.deadlines_s.get(rung.spec.name, rung.spec.timeout_s)
        )
        deadline_s = min(self.left_s(), usual_s)
        nodes = self.team.nodes[: max(1, cell.nproc // self.plan.nproc)]
        self.progress.cell_began(rung.spec.name, name, cell.nproc, rung.spec.question, deadline_s)
        began, clock = time.time(), time.monotonic()
        more: dict[str, Any] = {"hosts": list(names_of(nodes))}
        lost = [node for node in nodes if node.lost]
        if lost:
            result = self._without(lost[0], name, lost, more)
            self._write(
                rung,
                cell,
                replace(result, ranks=_ranks_on(lost, self.plan.nproc)),
                began,
                0.0,
                deadline_s,
            )
            return result
        hard_s = self.left_s()
        remote = self._started(nodes, rung, cell, pace, deadline_s, hard_s)
        if of_script:
            result, parts = self._of_script(remote, largest=largest, hard_s=hard_s)
        else:
            result, parts = self._of_probe(remote, deadline_s)
        result = held_against(result, rung.spec.name, self.plan.thresholds)
        for node in remote.lost:
            self.team.keep_lost(node, name)
        result = _with_trouble(result, parts) if not remote.lost else result
        if (
            self.interruption.asked and result.outcome == "timed_out" and not remote.lost
        ) or result.more.get("stopped_because") == "interrupted":
            result = Result(
                "not_measured",
                "it was interrupted",
                (),
                {**result.more, "stopped_because": "interrupted", "unmet": "interrupted"},
            )
            self.case.add(
                "interrupted",
                subject=JOB,
                cell=name,
                source="signal",
                data={"phase": rung.spec.name, "cell": name},
            )
        if of_script:
            more |= {
                "switched_on": dict(parts[0].switched_on) if parts else {},
                "left_alone": list(parts[0].left_alone) if parts else [],
            }
            more |= {"deadlines": by.row()} if by is not None else {}
            measures = list(merged([part.record for part in parts]).measures)
            self.case.add(
                "cell.measures",
                subject=JOB,
                cell=name,
                source="ladder",
                data={"measures": measures, "samples": 0, "sampled_every_s": EVERY_S},
            )
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
        """With a node that fell silent in the middle, its ranks are those that did not pass,
        whatever the others could still say.
        """
        if not remote.lost or result.outcome in ("failed", "crashed"):
            return result
        says = "; ".join(node.lost for node in remote.lost)
        return replace(
            result,
            outcome="timed_out",
            says=says,
            ranks=_ranks_on(remote.lost, self.plan.nproc),
            tells_all=True,
        )


def _ranks_on(nodes: Sequence[RemoteNode], each: int) -> tuple[int, ...]:
    return tuple(
        rank for node in nodes for rank in range(node.place * each, (node.place + 1) * each)
    )


def _with_trouble(result: Result, parts: Sequence[PartOver]) -> Result:
    trouble = next((part.trouble for part in parts if part.trouble), "")
    return (
        replace(result, outcome="not_measured", says=trouble)
        if trouble and result.outcome not in FAILED
        else result
    )
