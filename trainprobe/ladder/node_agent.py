"""A node's part of a climb that another node leads: it starts, watches, looks at and ends cells on
request.

Requests arrive as lines on stdin, answers go to stdout. When stdin ends or stays silent for too
long, the agent ends everything.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import sockets
from trainprobe.errors import TrainprobeError
from trainprobe.ladder import cell_measures, launch, probe_cell
from trainprobe.ladder.cell_record import CellRecord, record_of
from trainprobe.ladder.plan import Plan
from trainprobe.ladder.policy import Now
from trainprobe.ladder.probes import USER_SCRIPT
from trainprobe.ladder.settle import settle
from trainprobe.ladder.watch import Watch
from trainprobe.ladder.wire import (
    BEAT_S,
    SCHEMA,
    CellAsked,
    PartOver,
    Snapshot,
    line,
    looks_of,
    read,
)
from trainprobe.nodes.answers import row_of
from trainprobe.system.interruption import Interruption
from trainprobe.system.keeper import Keeper
from trainprobe.system.working_folders import make_working_folder, remove_working_folder
from trainprobe.targets.launch import free_port

DESERTED_S = 60.0  # the leader sends something every five seconds
LEAVE_S = 15.0  # for everything to end in order once the leader is gone
SNAPSHOT_S = 0.25
STDIN, STDOUT = 0, 1
# Variables of this node, not of the caller's: a step of SLURM describes its own node and GPUs.
OF_THE_NODE = (
    "SLURM_",
    "SLURMD_",
    "HOSTNAME",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "XDG_RUNTIME_DIR",
    "SSH_",
)


def climb_here() -> int:
    """Follow the orders on stdin until it ends. Return the exit code."""
    return NodeAgent().serve()


class NodeAgent:
    """One node's part of one climb."""

    def __init__(self) -> None:
        self.interruption = Interruption()
        self._orders: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._saying = threading.Lock()
        self._deserted = threading.Event()
        self._left = threading.Event()
        self._running = ""  # the running cell
        self._sent = 0

    def serve(self) -> int:
        """Follow orders until there are no more."""
        with self.interruption:
            for task, name in ((self._hear, "hear"), (self._beat, "beat")):
                threading.Thread(target=task, name=f"trainprobe-{name}", daemon=True).start()
            folder = ""
            try:
                first = self._orders.get()
                plan = read(Plan, first.get("plan"))
                if first.get("schema") != SCHEMA or plan is None:
                    self._say(says="trouble", reason="no plan of this version came on stdin")
                    return 0
                folder = make_working_folder()
                self.plan = replace(plan, environ=_environ(plan))
                with Case.create(os.path.join(folder, "case"), "diagnose", ()) as self.case:
                    self.case.redactor.learn(self.plan.environ)
                    host = os.uname().nodename
                    self._say(says="begin", host=host, now=time.time(), port=free_port())
                    self._serve_cells(folder)
            except OSError as error:
                self._say(says="trouble", reason=f"no working folder can be made: {error.strerror}")
            except TrainprobeError as error:
                self._say(says="trouble", reason=str(error))
            finally:
                if folder:
                    remove_working_folder(folder)
                self._left.set()
        return 0

    def _serve_cells(self, folder: str) -> None:
        number = 0
        while not self._deserted.is_set():
            order = self._orders.get()
            if order.get("do") == "bye":
                return
            asked = read(CellAsked, order.get("cell")) if order.get("do") == "cell" else None
            if asked is None:
                continue
            number += 1
            own = os.path.join(folder, str(number))
            os.makedirs(own)
            self.interruption.asked = self._deserted.is_set()
            self._running = asked.name
            try:
                over = self._cell(asked, own)
            except TrainprobeError as error:
                over = PartOver(trouble=str(error))
            finally:
                self._running = ""
                shutil.rmtree(own, ignore_errors=True)
            self._send_evidence()
            self._say(says="over", cell=asked.name, part=over, now=time.time(), port=free_port())

    def _cell(self, asked: CellAsked, folder: str) -> PartOver:
        of_script = asked.rung.spec.name == USER_SCRIPT
        made = self._launch(asked, folder)
        with Keeper(folder) as keeper:
            watch = Watch(made, keeper, self.case, asked.pace, self.plan.cwd, self.interruption)
            watch.cgroups.look(self.case, asked.name, "before")
            watch.start()
            self._say(says="started", cell=asked.name)
            if asked.alone:
                missed = probe_cell.follow(watch, asked.deadline_s)
                if keeper.running() and not self.interruption.asked:
                    watch.look()
            else:
                missed = self._until_ordered_to_end(watch, asked)
            if keeper.alive_pids():
                keeper.stop(asked.pace.stop_grace_s, asked.pace.kill_s)
            took_s = watch.elapsed_s
            settled = settle(watch, deadline_phase="deadline" if missed else "")
            if of_script:
                measures = cell_measures.of_cell(watch, asked.cell, took_s)["measures"]
                record = replace(record_of(watch, settled), measures=tuple(measures))
            else:
                record = CellRecord(
                    measures=tuple(probe_cell.measures_of(settled)),
                    answers=probe_cell.answers_of(settled),
                    bad_lines=probe_cell.bad_lines_of(settled),
                )
            return PartOver(record, dict(made.switched_on), made.left_alone, missed, keeper.trouble)

    def _launch(self, asked: CellAsked, folder: str) -> launch.Launch:
        if asked.rung.spec.name != USER_SCRIPT:
            rung, cell, deadline_s = asked.rung, asked.cell, asked.deadline_s
            return launch.probe(self.plan, rung, cell, folder, deadline_s, asked.part)
        make = launch.command if self.plan.form == "command" else launch.script
        return make(self.plan, asked.rung, asked.cell, folder, part=asked.part)

    def _until_ordered_to_end(self, watch: Watch, asked: CellAsked) -> bool:
        """Report the state, and look on request, until the order to end. Return whether a deadline
        ended the cell.
        """
        reported: Snapshot | None = None
        reported_at = 0.0
        while not self.interruption.asked and watch.elapsed_s < asked.hard_s:
            watch.tick()
            now = self._snapshot(watch, of_script=asked.rung.spec.name == USER_SCRIPT)
            clock = time.monotonic()
            age_s = clock - reported_at
            changed = reported is None or (
                age_s >= SNAPSHOT_S and replace(now, at=reported.at, stopped_for_s=0.0) != reported
            )
            if changed or age_s >= BEAT_S:
                self._say(says="now", cell=asked.name, now=now)
                reported, reported_at = replace(now, stopped_for_s=0.0), clock
            with contextlib.suppress(queue.Empty):
                order = self._orders.get_nowait()
                if order.get("do") == "look":
                    looked = watch.look()
                    if asked.part.nodes > 1:  # which other nodes do not answer
                        job = JobView(watch.alive_members(), cell=asked.name)
                        collect(self.case, sockets.COLLECTOR, job)
                    self._send_evidence()
                    self._say(says="looked", cell=asked.name, seen=looks_of(looked))
                elif order.get("do") == "end":
                    return order.get("missed") is True
        return watch.elapsed_s >= asked.hard_s

    @staticmethod
    def _snapshot(watch: Watch, *, of_script: bool) -> Snapshot:
        now = watch.now() if of_script else Now(watch.elapsed_s, watch.running(), ())
        failed = not of_script and watch.answer_failed()
        ranks, stopped_s = tuple(now.ranks), watch.stopped_for_s()
        launcher_at = now.launcher_failed_at
        return Snapshot(now.at, now.running, ranks, now.sign_at, launcher_at, stopped_s, failed)

    # ---- lines

    def _send_evidence(self) -> None:
        """Send the new records of the case. Files are not sent: the records hold their content."""
        records = self.case.evidence
        for record in records[self._sent :]:
            self._say(record=replace(record, files=()))
        self._sent = len(records)

    def _say(self, **row: Any) -> None:
        content = memoryview(line(**row) + b"\n")
        with self._saying:
            try:
                while content:
                    content = content[os.write(STDOUT, content) :]
            except OSError:
                self._desert()

    def _beat(self) -> None:
        """Report that this node is alive, also during a long look."""
        while not self._left.wait(BEAT_S):
            self._say(says="beat")

    def _hear(self) -> None:
        """Receive the orders. A stop and the loss of the leader take effect at once."""
        torn = b""
        waiting = select.poll()
        waiting.register(STDIN, select.POLLIN)
        while waiting.poll(DESERTED_S * 1000):
            try:
                block = os.read(STDIN, 2**18)
            except OSError:
                break
            if not block:
                break
            *lines, torn = (torn + block).split(b"\n")
            for order in map(row_of, lines):
                if order is None or order.get("do") == "ping":
                    continue
                if order.get("do") == "stop":
                    self.interruption.asked = True
                    continue
                self._orders.put(order)
        self._desert()
        if not self._left.wait(LEAVE_S):
            os._exit(1)  # the keeper ends what is left below us

    def _desert(self) -> None:
        self._deserted.set()
        self.interruption.asked = True
        self._orders.put({"do": "bye"})


def _environ(plan: Plan) -> dict[str, str]:
    """The caller's environment, with this node's own variables."""
    callers = {
        name: value
        for name, value in plan.environ.items()
        if name == "CUDA_VISIBLE_DEVICES" or not name.startswith(OF_THE_NODE)
    }
    own = {name: value for name, value in os.environ.items() if name.startswith(OF_THE_NODE)}
    return {**callers, **own}
