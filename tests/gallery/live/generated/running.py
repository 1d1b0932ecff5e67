"""Starts a job under a name that says nothing, sees whether it has come to what was planned, and
ends it. Knows nothing of who looks at it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.gallery.live.generated.maker import Job

LONGEST_START_S = 150.0  # on a machine with other work; some 15 s on two idle cores
MOST_STEPS = 100  # each fault has taken hold by then
IDLE_CPU_S = 0.35  # of all processes in that time; while ranks import, it is much more
SLOW_STEPS, SLOW_STEP_S = 3, 0.4


@dataclass
class Running:
    job: Job
    home: Path
    process: subprocess.Popen[bytes]
    beside: list[subprocess.Popen[bytes]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    acted: bool = False

    def steps(self) -> int:
        try:
            return (self.home / self.job.history).read_bytes().count(b"\n")
        except OSError:
            return 0


def start(job: Job, python: str = sys.executable) -> Running:
    """Write the files, start what stands beside the job, then the job."""
    home = Path(tempfile.gettempdir()) / f"run-{secrets.token_hex(4)}"
    ports = {"@PORT@": str(_free_port()), "@OTHER_PORT@": str(_free_port())}

    def with_ports(text: str) -> str:
        for mark, port in ports.items():
            text = text.replace(mark, port)
        return text

    for name, text in job.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_ports(text), encoding="utf-8")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        **job.environ,
        "PATH": f"{os.path.dirname(python)}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(home / ".cache"),
    }

    def begin(command: list[str], out: str) -> subprocess.Popen[bytes]:
        with (home / out).open("wb") as output:
            return subprocess.Popen(
                command, cwd=home, env=environ, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,
            )  # fmt: skip

    beside = [begin([python, name], "aside.out") for name in job.beside]
    if beside:
        time.sleep(1.0)
    words = [with_ports(word) for word in job.command]
    return Running(job, home, begin(words, "output.txt"), beside)


def settled(running: Running) -> str:
    """Wait until the job is where it was meant to come; "" then, else what it did instead."""
    job = running.job
    last_steps, changed = -1, time.monotonic()
    busy_since, busy_s = changed, 0.0  # for a job without a step
    slow_from, slow_since = -1, 0.0
    while True:
        time.sleep(0.4)
        now = time.monotonic()
        if running.process.poll() is not None:
            return f"ended with {running.process.returncode}"
        if now - running.began > LONGEST_START_S:
            return f"made {last_steps} steps and did not settle"
        steps = running.steps()
        if steps != last_steps:
            last_steps, changed = steps, now
        if job.settled == "still" and steps > MOST_STEPS:
            return f"made {steps} steps and goes on"
        _act(running, steps)
        quiet_s = now - changed
        if job.settled == "advancing" and steps >= 6:
            time.sleep(job.look_after_s)
            return ""
        if job.settled == "slow" and steps >= 6:
            if slow_from < 0:
                slow_from, slow_since = steps, now
            elif steps >= slow_from + SLOW_STEPS:
                fast = now - slow_since < SLOW_STEP_S * (steps - slow_from)
                return "steps are not slow" if fast else ""
        if job.settled == "still" and steps >= job.first_steps:
            if steps == 0 and (now_s := _cpu_s(running.home)) - busy_s > IDLE_CPU_S:
                busy_since, busy_s = now, now_s
            started = steps > 0 or now - busy_since >= job.still_s
            if quiet_s >= job.still_s and started and (job.act is None or running.acted):
                return ""


def held(running: Running, steps: int) -> str:
    """After the look: "" where the job went on as planned since it had made so many steps."""
    if running.process.poll() is not None:
        return f"ended with {running.process.returncode}"
    if running.job.settled == "still":
        return "" if running.steps() == steps else f"{running.steps() - steps} more steps"
    until = time.monotonic() + 25
    while running.steps() <= steps:
        if time.monotonic() > until:
            return "no more steps"
        time.sleep(0.3)
    return ""


def end(running: Running) -> None:
    """Kill whatever was started: the sessions, and all that stand in the folder."""
    for process in (running.process, *running.beside):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for _ in range(3):  # what a launcher starts anew while it is being killed
        for pid in _inside(running.home):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for process in (running.process, *running.beside):
        process.wait()
    shutil.rmtree(running.home, ignore_errors=True)


def ranks_of(running: Running) -> dict[int, int]:
    """The pid of each rank that lives: by its environment, else by the order of the spawned."""
    found: dict[int, int] = {}
    spawned = []
    for pid in sorted(_inside(running.home)):
        told = _rank_told(pid)
        if (
            told is not None
            and _rank_told(_parent(pid)) is None
            and _state(pid) != "Z"
            and _is_python(pid)
        ):
            found[told] = pid
        if b"spawn_main" in _read(pid, "cmdline") and _parent(pid) == running.process.pid:
            spawned.append(pid)
    return found or dict(enumerate(spawned))


def pid_to_type(running: Running) -> int:
    """The launcher; of a shell's ranks sometimes one of them."""
    job = running.job
    ranks = ranks_of(running)
    if job.types_a_rank and job.truth.launcher in ("bash", "popen") and ranks:
        return ranks[sorted(ranks)[job.seed % len(ranks)]]
    return running.process.pid


def _act(running: Running, steps: int) -> None:
    act = running.job.act
    if act is None or running.acted:
        return
    if act.once_exists:
        if not (running.home / act.once_exists).exists():
            return
        time.sleep(2)
    elif steps < act.after_steps:
        return
    rank = ranks_of(running).get(act.rank)
    if rank is None:
        return
    children = [pid for pid in sorted(_inside(running.home)) if _parent(pid) == rank]
    whom = {
        "rank": [rank],
        "worker": [pid for pid in children if _read(pid, "cmdline") == _read(rank, "cmdline")][:1],
        "helper": [pid for pid in children if _read(pid, "cmdline") != _read(rank, "cmdline")],
    }[act.whom]
    for pid in whom:
        os.kill(pid, signal.SIGSTOP if act.signal == "STOP" else signal.SIGKILL)
        running.acted = True


def _inside(home: Path) -> Iterator[int]:
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd").startswith(str(home)):
                yield int(entry)


def _read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _rank_told(pid: int) -> int | None:
    told = re.search(rb"(?:^|\0)RANK=(\d+)\0", _read(pid, "environ"))
    return int(told[1]) if told else None


def _is_python(pid: int) -> bool:
    return b"python" in _read(pid, "cmdline").split(b"\0")[0]


def _stat(pid: int) -> list[str]:
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _parent(pid: int) -> int:
    return int((_stat(pid) or ["", "0"])[1])


def _state(pid: int) -> str:
    return (_stat(pid) or ["X"])[0]


def _cpu_s(home: Path) -> float:
    """The CPU time of all processes in the folder, in seconds."""
    stats = [_stat(pid) for pid in _inside(home)]
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in stats if stat)
    return ticks / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
