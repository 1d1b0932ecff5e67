"""Jobs in which one rank is a fifth to a third slower, and noisy ones in which none is, under
`trainprobe run`: who is told, and after how many steps?

    python -m tests.bench.stragglers [--slow 10] [--noisy 20] [--seed 1] [--at-once 1]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.gallery.live.launching import free_port
from tests.gallery.live.under_run import events

REASONS = ("computes", "tokenizes", "sleeps")
RANKS = """
import json, os, random, time
import torch, torch.distributed as dist
import trainprobe

plan = json.load(open("plan.json"))
draw = random.Random()

def computes(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        torch.rand(60, 60) @ torch.rand(60, 60)

def tokenizes(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        " ".join(sorted("the quick brown fox jumps over it".split()))

def sleeps(seconds):
    time.sleep(seconds)

def main(rank):
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{plan['port']}", rank=rank,
        world_size=plan["ranks"])
    draw.seed(plan["seed"] * 100 + rank)
    for step in range(plan["steps"]):
        noise = draw.lognormvariate(0, plan["noise"]) * (4 if draw.random() < 0.02 else 1)
        began = time.monotonic()
        computes(plan["work_s"] * noise)
        took_s = time.monotonic() - began  # on a crowded machine some times as long
        if rank == plan["rank"] and step >= plan["since"]:
            base_s = took_s if plan["reason"] == "sleeps" else plan["work_s"]
            globals()[plan["reason"]](base_s * plan["slower"])
        dist.all_reduce(torch.ones(1000))
        trainprobe.step(step)
        if rank == 0:
            open("step", "w").write(str(step))

torch.multiprocessing.start_processes(main, nprocs=plan["ranks"], start_method="fork")
"""


def drawn(seed: int, *, slow: bool) -> dict[str, Any]:
    """A job: its size, its steps, and who is slow and why."""
    draw = random.Random(f"{seed} {slow}")
    ranks = draw.choice([2, 3, 4])
    since = draw.choice([0, 60])
    return {
        "seed": seed,
        "ranks": ranks,
        "steps": since + 110,
        "since": since,
        "work_s": draw.uniform(0.02, 0.05),
        "noise": draw.uniform(0.05, 0.15) if slow else draw.uniform(0.1, 0.3),
        "rank": draw.randrange(ranks) if slow else -1,
        "reason": REASONS[seed % len(REASONS)],
        "slower": draw.uniform(0.2, 0.3),
    }


def one_run(job: dict[str, Any]) -> dict[str, Any]:
    """Start it, and return what was told at which step."""
    folder = Path(tempfile.mkdtemp(prefix="job-"))
    (folder / "plan.json").write_text(json.dumps({**job, "port": free_port()}))
    (folder / "train.py").write_text(RANKS)
    tool = [sys.executable, "-m", "trainprobe", "run", "--case", "case", "--"]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            [*tool, sys.executable, "train.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    told: list[dict[str, Any]] = []
    known, began, first = 0, 0.0, 0
    while child.poll() is None:
        time.sleep(0.1)
        with contextlib.suppress(OSError, ValueError):
            step = int((folder / "step").read_text())
            began = began or time.monotonic()
            first = first or step
        seen = [one for one in events(folder / "case") if says(one)]
        told += [
            {"step": step, "says": says(one), "ranks": one.get("ranks")} for one in seen[known:]
        ]
        known = len(seen)
    took_s = time.monotonic() - began
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    looks = [one for one in events(folder / "case") if one["event"] == "looked"]
    shutil.rmtree(folder, ignore_errors=True)
    return {
        **job,
        "code": child.returncode,
        "told": told,
        "looks": [(one["verdict"], one["says"][:200], one["took_s"]) for one in looks],
        "step_s": round(took_s / max(1, job["steps"] - first), 3),
        "load": round(os.getloadavg()[0] / (os.cpu_count() or 1), 1),
    }


def says(event: dict[str, Any]) -> str:
    """What an event of the journal tells of a slow rank."""
    told = event["event"] == "pace" or event.get("means") == "slow"
    return str(event["says"]) if told else ""


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", type=int, default=10)
    parser.add_argument("--noisy", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1)
    asked = parser.parse_args()
    jobs = [drawn(asked.seed + place, slow=True) for place in range(asked.slow)]
    jobs += [drawn(asked.seed + place, slow=False) for place in range(asked.noisy)]
    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        for one in pool.map(one_run, jobs):
            print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
