"""The tool killed at random moments: what is left of processes and files, whether the job goes on,
and whether the evidence can be read.

python -m tests.trust.kills [--times 50] [--seed 1] [COMMAND …]
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import TOKEN, end, processes_with, python_path

WITHIN_S = 10.0
MOST_S = 180.0
RANKS = 2
SCRIPT = """
import time
for step in range(400):
    print("step", step, flush=True)
    time.sleep(0.05)
"""
# A rank that moves, with a recorder where torch has its own and a thread that sleeps: --deep
# borrows that one. Its steps stand in a file, so that each can be seen from outside.
RANK = """
import os, sys, threading, time, types
module = types.ModuleType("torch._C._distributed_c10d")
def _dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False):
    import pickle
    entry = {"profiling_name": "gloo:barrier", "process_group": ("0", "default_pg"),
             "collective_seq_id": 4, "state": "scheduled", "frames": []}
    return pickle.dumps({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": [entry]}, 2)
module._dump_fr_trace = _dump_fr_trace
sys.modules["torch._C._distributed_c10d"] = module
threading.Thread(target=threading.Event().wait, daemon=True).start()
steps = os.open(f"steps-{os.environ['RANK']}", os.O_RDWR | os.O_CREAT, 0o600)
step = 0
while True:
    step += 1
    os.pwrite(steps, step.to_bytes(8, "little"), 0)
    time.sleep(0.05)
"""
WORDS = {
    "attach": ("attach", "PID", "--case", "case"),
    "attach --deep": ("attach", "PID", "--deep", "--case", "case"),
    "explain": ("explain", "given", "--case", "case"),
    "diagnose": ("diagnose", "--nproc", "2", "--case", "case", "--", "python", "train.py"),
}
DUMP = {
    "version": "2.10",
    "pg_config": {},
    "pg_status": {},
    "entries": [
        {
            "profiling_name": "nccl:all_reduce",
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number,
            "state": "completed",
            "frames": [{"name": "step", "filename": "/w/train.py", "line": number}],
        }
        for number in range(2000)
    ],
}


class Job:
    """Two ranks that count their steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "rank.py").write_text(RANK)
        environment = {**os.environ, "WORLD_SIZE": str(RANKS), "TMPDIR": str(folder.parent / "tmp")}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
        self.ranks = [
            subprocess.Popen(
                [sys.executable, "rank.py"],
                cwd=folder,
                env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank in range(RANKS)
        ]
        until = time.monotonic() + MOST_S
        while not all(self._steps(rank) for rank in range(RANKS)):
            if time.monotonic() > until:
                raise TimeoutError("the ranks make no steps")
            time.sleep(0.05)

    def harm(self) -> str:
        """Say what is wrong with a rank; nothing where each goes on."""
        before = [self._steps(rank) for rank in range(RANKS)]
        until = time.monotonic() + WITHIN_S
        while any(self._steps(rank) <= was for rank, was in enumerate(before)):
            if time.monotonic() > until:
                return "a rank makes no steps"
            time.sleep(0.05)
        for rank, process in enumerate(self.ranks):
            if process.poll() is not None:
                return f"rank {rank} ended with {process.returncode}"
            for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
                text = status.read_text()
                if "\nTracerPid:\t0\n" not in text or "\nState:\tT" in text.replace("\tt", "\tT"):
                    return f"a thread of rank {rank} is traced or stopped"
        return ""

    def close(self) -> None:
        for process in self.ranks:
            process.kill()
            process.wait()

    def _steps(self, rank: int) -> int:
        path = self.folder / f"steps-{rank}"
        return int.from_bytes(path.read_bytes(), "little") if path.exists() else 0


@contextmanager
def surroundings(command: str) -> Iterator[tuple[Path, Job | None]]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "tmp").mkdir()
        (place / "train.py").write_text(SCRIPT)
        (place / "given").mkdir()
        lines = "[rank0]: step 1 loss 2.0\nRuntimeError: x\n"
        (place / "given" / "big.log").write_text(lines * 200_000)
        for rank in range(4):
            dump = {**DUMP, "rank": rank}
            (place / "given" / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
        job = Job(place / "job") if command.startswith("attach") else None
        try:
            yield place, job
        finally:
            if job is not None:
                job.close()


def started(
    command: str, number: int, place: Path, job: Job | None, token: str
) -> subprocess.Popen[bytes]:
    stand_for = {"case": f"case{number}", "PID": str(job.ranks[1].pid) if job else ""}
    words = [stand_for.get(word, word) for word in WORDS[command]]
    environment = {**os.environ, **python_path(), TOKEN: token, "TMPDIR": str(place / "tmp")}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    return subprocess.Popen(
        [sys.executable, "-m", "trainprobe", *words],
        cwd=place,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def killed(
    command: str, number: int, after_s: float, place: Path, job: Job | None
) -> dict[str, int]:
    """Kill the tool after a while and count what came of it."""
    token, scratch = uuid.uuid4().hex, place / "tmp"
    tool = started(command, number, place, job, token)
    time.sleep(after_s)
    in_work = bool(of_ours(scratch))
    running = tool.poll() is None
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    settle(token, scratch)
    left, files = processes_with(token), of_ours(scratch)
    end(list(left))
    if files:
        print(f"  {command}: left after {after_s:.2f} s: {', '.join(files)}", flush=True)
    harm = job.harm() if job is not None else ""
    if harm:
        print(f"  {command}: after {after_s:.2f} s: {harm}", flush=True)
    rows, damaged = read(place / f"case{number}" / "evidence.jsonl")
    return {
        "in mid-run": running,
        "with a file in TMPDIR": in_work,
        "processes left": len(left),
        "runs that left files": bool(files),
        "harmed": bool(harm),
        "rows": rows,
        "damaged rows": damaged,
    }


def settle(token: str, scratch: Path) -> None:
    """Give what outlives the tool its time to end and to clear up."""
    until = time.monotonic() + WITHIN_S
    while (processes_with(token) or of_ours(scratch)) and time.monotonic() < until:
        time.sleep(0.1)


def of_ours(scratch: Path) -> list[str]:
    """Return what the tool left there; torch keeps its compiler's cache in the same folder."""
    return [name for name in os.listdir(scratch) if not name.startswith("torchinductor_")]


def read(evidence: Path) -> tuple[int, int]:
    """Return how many whole lines there are, and how many of them cannot be read."""
    lines = evidence.read_text("utf-8").split("\n")[:-1] if evidence.exists() else []
    damaged = 0
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            damaged += 1
    return len(lines), damaged


def whole_run_s(command: str, place: Path, job: Job | None) -> float:
    began = time.monotonic()
    token = uuid.uuid4().hex
    tool = started(command, 0, place, job, token)
    try:
        tool.wait(MOST_S)
    except subprocess.TimeoutExpired:
        tool.kill()  # on a machine so busy this is one more kill
        tool.wait()
    took_s = time.monotonic() - began
    settle(token, place / "tmp")
    return took_s


def kills(command: str, times: int, seed: int) -> dict[str, int]:
    """Kill `command` at `times` drawn moments of its run; return the sums of what was counted."""
    draw, totals = random.Random(f"{command}-{seed}"), collections.Counter[str]()
    with surroundings(command) as (place, job):
        takes_s = whole_run_s(command, place, job)
        for number in range(1, times + 1):
            totals.update(killed(command, number, draw.uniform(0.05, takes_s), place, job))
        whole_run_s(command, place, job)
        totals["files left after one more run"] = len(of_ours(place / "tmp"))
    return dict(totals)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("commands", nargs="*", help=", ".join(WORDS))
    options.add_argument("--times", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    for command in asked.commands or WORDS:
        print(command, asked.times, kills(command, asked.times, asked.seed), flush=True)


if __name__ == "__main__":
    main()
