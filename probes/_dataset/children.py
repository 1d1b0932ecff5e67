"""Starts the children of one cell, watches them within their deadline, and leaves nothing of them behind.

Every child is a session of its own; the probe is the subreaper of what they lose. What stands still is asked for its stacks first, by a signal that only
those processes get that handle it, and is killed then, with all below it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import _emit
from _dataset import looks
from _memory import memory_limits

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "cell.py")
PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.05
LOOK_S = 0.4
STACK_S = 0.6
IDLE_SHARE = 0.04  # of the time that has passed: whoever starts slowly computes more, even where ten others want the same processor
OUTPUT_CAP = 8 * 2**20
TAIL = 4000
DUMPED = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d+)(?: in (?P<function>\S+))?', re.MULTILINE)
ASIDE = ("/_dataset/", "/faulthandler.py", "/multiprocessing/popen_", "/multiprocessing/process.py", "/multiprocessing/context.py")


class Stack(NamedTuple):
    """The main thread of one process, outermost frame first. `worker` is true for a process below the rank's own."""

    pid: int
    worker: bool
    frames: List[Dict[str, Any]]


class Said(NamedTuple):
    """What became of one child. `how` is done, failed (it said what), died, or stood (it was killed by us as it made no progress)."""

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


class Cell(NamedTuple):
    """`seen` are looks at all children together, each with its Unix time; `waited_s` is how long the probe waited for news where nothing moved, `cpu_s` what they computed meanwhile."""

    said: List[Said]
    seen: List[Tuple[float, looks.Look]]
    waited_s: float
    cpu_s: float
    oom_kills: int


def become_subreaper() -> None:
    with contextlib.suppress(Exception):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(task: Dict[str, Any], ranks: int, deadline_s: float, patience_s: float, idle_s: float) -> Cell:
    """Run `task` in `ranks` children at the same moment.

    All are ended after `deadline_s`, when no child has said anything for `patience_s`, and when none has for `idle_s` and none computed either.
    """
    with _emit.scratch_folder("data") as folder:
        return _Run(task, ranks, folder).watch(deadline_s, patience_s, idle_s)


class _Run:
    def __init__(self, task: Dict[str, Any], ranks: int, folder: str) -> None:
        self.folder, self.ranks, self.kills = folder, ranks, memory_limits().kills
        self.seen: List[Tuple[float, looks.Look]] = []
        self.looked = self.look_took_s = 0.0
        self.own_words: Dict[int, str] = {}  # what each printed before we made it print its stacks
        self.shm_before = looks.shm_used()
        self.children = [self._start(task, rank) for rank in range(ranks)]

    def path(self, rank: int, name: str) -> str:
        return os.path.join(self.folder, f"rank{rank}.{name}")

    def _start(self, task: Dict[str, Any], rank: int) -> subprocess.Popen[bytes]:
        told = {
            **task,
            "rank": rank,
            "ranks": self.ranks,
            "shm_before": self.shm_before,
            "reports": self.path(rank, "jsonl"),
            "store": os.path.join(self.folder, "store"),
        }
        port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": self.ranks, "LOCAL_WORLD_SIZE": self.ranks}
        env = {**os.environ, **port, **{name: str(number) for name, number in numbers.items()}, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
        env.pop("TRAINPROBE_EVENTS", None)
        with open(self.path(rank, "out"), "ab") as out:
            return subprocess.Popen(
                [sys.executable, PROGRAM, json.dumps(told)], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def watch(self, deadline_s: float, patience_s: float, idle_s: float) -> Cell:
        began = news = time.monotonic()
        sizes: List[int] = []
        stacks: Dict[int, List[Stack]] = {}
        stood = waited_s = cpu_s = used_s = 0.0
        while any(child.poll() is None for child in self.children):
            time.sleep(POLL_S)
            now = time.monotonic()
            before, sizes = sizes, [self._size(rank) for rank in range(self.ranks)]
            if sizes != before:
                news, used_s = now, self._cpu_s()
            self._look(now)
            idle = now - news > idle_s and self._cpu_s() - used_s < IDLE_SHARE * (now - news)
            if idle or now - began > deadline_s or now - news > patience_s:
                stood, waited_s, cpu_s = now, now - news, self._cpu_s() - used_s
                break
            if self._somebody_failed():  # the others may wait for it for ever
                time.sleep(min(1.0, deadline_s / 10))
                break
        if stood:
            stacks = {rank: self._stacks(rank, child) for rank, child in enumerate(self.children) if child.poll() is None}
        alive = [rank for rank, child in enumerate(self.children) if child.poll() is None]
        end_all()
        said = [self._said(rank, child, rank in alive, stood > 0, stacks.get(rank, [])) for rank, child in enumerate(self.children)]
        bury()
        return Cell(said, self.seen, waited_s, cpu_s, max(0, memory_limits().kills - self.kills))

    def _somebody_failed(self) -> bool:
        return self.ranks > 1 and any(
            child.poll() is not None and not any(line["what"] == "done" for line in self._lines(rank)) for rank, child in enumerate(self.children)
        )

    def _cpu_s(self) -> float:
        return looks.cpu_s(pid for child in self.children if child.poll() is None for pid in [child.pid, *looks.below(child.pid)])

    def _size(self, rank: int) -> int:
        with contextlib.suppress(OSError):
            if os.path.getsize(self.path(rank, "out")) > OUTPUT_CAP:
                os.truncate(self.path(rank, "out"), 0)  # opened for appending: what comes next stands at its beginning
        with contextlib.suppress(OSError):
            return os.path.getsize(self.path(rank, "jsonl"))
        return 0

    def _look(self, now: float) -> None:
        """Add up all ranks at one moment, seldom enough that looking takes a tenth of the time."""
        if now - self.looked < max(LOOK_S, 10 * self.look_took_s):
            return
        each = [looks.look(child.pid, self.shm_before) for child in self.children if child.poll() is None]
        if each:
            top = looks.most(each)
            self.seen.append((time.time(), top._replace(pss=sum(one.pss for one in each), pids=sum(one.pids for one in each))))
        self.looked = time.monotonic()
        self.look_took_s = self.looked - now

    def _stacks(self, rank: int, child: subprocess.Popen[bytes]) -> List[Stack]:
        """Ask the child, then everything below it, for stacks, one after the other: what is printed names no process."""
        found = []
        self.own_words[rank] = self._printed(rank)
        for pid in [child.pid, *looks.below(child.pid)][:16]:
            if not looks.catches(pid, signal.SIGUSR1):
                continue
            before = self._printed(rank)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGUSR1)
            until = time.monotonic() + STACK_S
            while time.monotonic() < until and len(self._printed(rank)) == len(before):
                time.sleep(0.02)
            time.sleep(0.05)
            frames = main_thread(self._printed(rank)[len(before) :])
            if frames:
                found.append(Stack(pid, pid != child.pid, frames))
        return found

    def _printed(self, rank: int) -> str:
        with contextlib.suppress(OSError), open(self.path(rank, "out"), "rb") as file:
            file.seek(max(0, file.seek(0, 2) - 2**20))
            return file.read().decode("utf-8", "replace")
        return ""

    def _lines(self, rank: int) -> List[Dict[str, Any]]:
        found = []
        with contextlib.suppress(OSError), open(self.path(rank, "jsonl"), encoding="utf-8", errors="replace") as file:
            for text in file:
                with contextlib.suppress(ValueError):
                    line = json.loads(text)
                    if isinstance(line, dict) and isinstance(line.get("what"), str):
                        found.append(line)
        return found

    def _said(self, rank: int, child: subprocess.Popen[bytes], alive: bool, stood: bool, stacks: List[Stack]) -> Said:
        lines = self._lines(rank)
        kinds = {line["what"] for line in lines}
        told = bool(kinds & {"mistyped", "nonsense"}) or any(line["what"] == "raised" and not line.get("soft") for line in lines)
        how = "done" if "done" in kinds else "failed" if told else "stood" if alive and stood else "ended" if alive else "died"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        return Said(rank, how, lines, None if alive else child.returncode, self.own_words.get(rank, self._printed(rank))[-TAIL:], stacks)


def main_thread(dump: str) -> List[Dict[str, Any]]:
    """Read faulthandler's text, innermost first; the main thread is the one that it prints last. Our own frames and those of Python's starting of processes go."""
    part = re.split(r"^(?:Current thread|Thread) 0x[0-9a-f]+[^\n]*$", dump, flags=re.MULTILINE)[-1]
    found = [match.groupdict() for match in DUMPED.finditer(part)]
    frames = [
        {"file": one["file"], "line": int(one["line"]), "function": one["function"] or "", "text": _line(one["file"], int(one["line"]))}
        for one in reversed(found)
    ]
    return [frame for frame in frames if not any(part in str(frame["file"]) for part in ASIDE)]


def _line(path: str, number: int) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return next((text.strip()[:200] for place, text in enumerate(file, 1) if place == number), "")
    return ""


def end_all() -> None:
    """Kill everything below this probe, what was orphaned into it included, and wait for none longer than two seconds."""
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        under = looks.below(os.getpid())
        if not under:
            break
        for pid in under:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def bury() -> None:
    """Reap what was orphaned into this probe; its own children have been waited for."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
