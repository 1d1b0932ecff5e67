"""Runs the children of one cell: starts them, watches them within their deadline, and leaves
nothing of them behind.

The probe is the subreaper of what they lose. A child that makes no progress is asked for its stacks
first, by a signal that goes only to processes that handle it; then it is killed with all below it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import _emit
from _scaled_dataset import process_usage
from _shared.child_processes import PythonChild, frames_of_dump, rank_variables
from _shared.memory import memory_limits
from _shared.proc import descendants

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "cell_child.py")
PR_SET_CHILD_SUBREAPER = 36
PORT = 29511  # for what reads MASTER_PORT; the group itself meets over a file
POLL_S = 0.05
LOOK_S = 0.4
STACK_S = 0.6
# Share of the time that has passed: a child that starts slowly computes more, even where ten others
# want the same processor.
IDLE_SHARE = 0.04
OUTPUT_CAP = 8 * 2**20
TAIL = 4000
PYTHONS_OWN = (  # how Python starts processes and prints stacks
    "/faulthandler.py",
    "/multiprocessing/popen_",
    "/multiprocessing/process.py",
    "/multiprocessing/context.py",
)


class Stack(NamedTuple):
    """The main thread of one process, outermost frame first. `worker`: below the rank's own."""

    pid: int
    worker: bool
    frames: List[Dict[str, Any]]


class ChildRun(NamedTuple):
    """How one child ended: done, failed, died, stood (no progress) or ended (another failed)."""

    rank: int
    how: str
    lines: List[Dict[str, Any]]
    code: Optional[int]
    tail: str
    stacks: List[Stack]

    def of(self, what: str) -> List[Dict[str, Any]]:
        return [line for line in self.lines if line.get("what") == what]

    @property
    def phase(self) -> str:
        """The last step that was begun."""
        phases = self.of("phase")
        return str(phases[-1].get("phase", "")) if phases else "start"


class CellRun(NamedTuple):
    """`samples` are looks at all children together, each with its Unix time; `waited_s` is how
    long the probe waited for news where nothing moved, `cpu_s` what they computed meanwhile.
    """

    runs: List[ChildRun]
    samples: List[Tuple[float, process_usage.Usage]]
    waited_s: float
    cpu_s: float
    oom_kills: int


def become_subreaper() -> None:
    with contextlib.suppress(Exception):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    task: Dict[str, Any], ranks: int, deadline_s: float, patience_s: float, idle_s: float
) -> CellRun:
    """Run `task` in `ranks` children at once. All are ended after `deadline_s`, when none reports
    for `patience_s`, and when none reports or computes for `idle_s`.
    """
    with _emit.scratch_folder("data") as folder:
        return _Watch(task, ranks, folder).until_ended(deadline_s, patience_s, idle_s)


class _Child(PythonChild):
    """One rank. It reports in FOLDER/rankN.jsonl."""

    def __init__(self, task: Dict[str, Any], folder: str, rank: int, ranks: int) -> None:
        self.rank = rank
        self.stacks: List[Stack] = []
        self.own_output: Optional[str] = None  # before we made it print its stacks
        reports = os.path.join(folder, f"rank{rank}.jsonl")
        store = os.path.join(folder, "store")
        task = {**task, "rank": rank, "ranks": ranks, "reports": reports, "store": store}
        variables = {
            **rank_variables(rank, ranks, PORT),
            "PYTHONUNBUFFERED": 1,
            "PYTHONFAULTHANDLER": 1,
        }
        if "OMP_NUM_THREADS" not in os.environ:
            variables.pop("OMP_NUM_THREADS")  # the child sets torch's threads, not the libraries'
        super().__init__(folder, f"rank{rank}", [PROGRAM, json.dumps(task)], variables)

    def size(self) -> int:
        """The bytes that it has reported; its output is cut where it grows too long."""
        with contextlib.suppress(OSError):
            if os.path.getsize(self.path("out")) > OUTPUT_CAP:
                os.truncate(self.path("out"), 0)  # it is opened for appending
        with contextlib.suppress(OSError):
            return os.path.getsize(self.path("jsonl"))
        return 0

    def lines(self) -> List[Dict[str, Any]]:
        found = []
        for text in self.text("jsonl").splitlines():
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict) and isinstance(line.get("what"), str):
                    found.append(line)
        return found

    def ask_for_stacks(self) -> None:
        """Ask the child, then each process below it in turn: what they print names no process."""
        self.own_output = self.text("out")
        for pid in [self.pid, *descendants(self.pid)][:16]:
            if not process_usage.catches(pid, signal.SIGUSR1):
                continue
            before = self.text("out")
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGUSR1)
            until = time.monotonic() + STACK_S
            while time.monotonic() < until and len(self.text("out")) == len(before):
                time.sleep(0.02)
            time.sleep(0.05)
            frames = main_thread(self.text("out")[len(before) :])
            if frames:
                self.stacks.append(Stack(pid, pid != self.pid, frames))

    def run(self, *, alive: bool, stood: bool) -> ChildRun:
        lines = self.lines()
        kinds = {line["what"] for line in lines}
        failed = bool(kinds & {"mistyped", "nonsense"}) or any(
            line["what"] == "raised" and not line.get("soft") for line in lines
        )
        how = "died" if not alive else "stood" if stood else "ended"
        how = "done" if "done" in kinds else "failed" if failed else how
        code = None if alive else self.process.returncode
        output = self.text("out") if self.own_output is None else self.own_output
        return ChildRun(self.rank, how, lines, code, output[-TAIL:], self.stacks)


class _Watch:
    def __init__(self, task: Dict[str, Any], ranks: int, folder: str) -> None:
        self.kills = memory_limits().kills
        self.samples: List[Tuple[float, process_usage.Usage]] = []
        self.sampled = self.sample_took_s = 0.0
        self.shm_before = process_usage.shm_used()
        task = {**task, "shm_before": self.shm_before}
        self.children = [_Child(task, folder, rank, ranks) for rank in range(ranks)]

    def until_ended(self, deadline_s: float, patience_s: float, idle_s: float) -> CellRun:
        began = news = time.monotonic()
        sizes: List[int] = []
        stood, waited_s, cpu_s, used_s = False, 0.0, 0.0, 0.0
        while any(child.alive() for child in self.children):
            time.sleep(POLL_S)
            now = time.monotonic()
            before, sizes = sizes, [child.size() for child in self.children]
            if sizes != before:
                news, used_s = now, self._cpu_s()
            self._sample(now)
            idle = now - news > idle_s and self._cpu_s() - used_s < IDLE_SHARE * (now - news)
            if idle or now - began > deadline_s or now - news > patience_s:
                stood, waited_s, cpu_s = True, now - news, self._cpu_s() - used_s
                break
            if self._one_failed():  # the others may wait for it for ever
                time.sleep(min(1.0, deadline_s / 10))
                break
        alive = [child for child in self.children if child.alive()]
        for child in alive if stood else ():
            child.ask_for_stacks()
        alive = [child for child in self.children if child.alive()]
        end_all()
        for child in self.children:
            with contextlib.suppress(Exception):  # one that cannot be killed is left behind
                child.process.wait(5)
        runs = [child.run(alive=child in alive, stood=stood) for child in self.children]
        reap_orphans()
        kills = max(0, memory_limits().kills - self.kills)
        return CellRun(runs, self.samples, waited_s, cpu_s, kills)

    def _one_failed(self) -> bool:
        return len(self.children) > 1 and any(
            not child.alive() and not any(line["what"] == "done" for line in child.lines())
            for child in self.children
        )

    def _cpu_s(self) -> float:
        alive = [child.pid for child in self.children if child.alive()]
        return process_usage.cpu_s(pid for top in alive for pid in [top, *descendants(top)])

    def _sample(self, now: float) -> None:
        """Add up all ranks at one moment, seldom enough that looking takes a tenth of the time."""
        if now - self.sampled < max(LOOK_S, 10 * self.sample_took_s):
            return
        alive = [child.pid for child in self.children if child.alive()]
        each = [process_usage.look(pid, self.shm_before) for pid in alive]
        if each:
            self.samples.append((time.time(), process_usage.added(each)))
        self.sampled = time.monotonic()
        self.sample_took_s = self.sampled - now


def main_thread(dump: str) -> List[Dict[str, Any]]:
    """The frames of `frames_of_dump` without those of Python's starting of processes."""
    return [
        frame
        for frame in frames_of_dump(dump)
        if not any(part in str(frame["file"]) for part in PYTHONS_OWN)
    ]


def end_all() -> None:
    """Kill everything below this probe, with what was orphaned into it, for two seconds."""
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        below = descendants(os.getpid())
        if not below:
            break
        for pid in below:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def reap_orphans() -> None:
    """The probe's own children have been waited for."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
