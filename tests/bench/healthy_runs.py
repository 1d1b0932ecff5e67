"""Healthy jobs with nasty pauses under `trainprobe run`: does any of them cause an alarm?

    python -m tests.bench.healthy_runs --seeds 0-99 [--at-once 2] [--seconds 80] [--into FILE]

Each seed draws a job of its own: how many ranks, how long its steps are, whether it says them, and
which pauses it makes, when and for how long. The jobs mostly sleep, so that they take little of the
machine. What is a hang by any measure is no pause: nobody just sleeps here for ten seconds.
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
from tests.gallery.live.under_run import means

PROGRAM = Path(__file__).with_name("pausing_job.py")
# What the ranks do themselves, for how many seconds; what is done to them from outside.
INSIDE = {
    "checkpoint": (8.0, 30.0),
    "rank0_evaluation": (8.0, 20.0),
    "evaluation": (6.0, 12.0),
    "compilation": (6.0, 15.0),
    "preprocess_under_lock": (8.0, 20.0),
    "download": (5.0, 20.0),
    "slow_batch": (2.0, 7.0),
    "late_rank": (4.0, 15.0),
    "new_loader_workers": (2.0, 6.0),
    "steps_grow": (5.0, 5.0),
}
OUTSIDE = {"rank_stopped_briefly": (1.0, 4.0), "all_suspended": (6.0, 20.0)}


def drawn(seed: int, seconds: float) -> dict[str, Any]:
    """The job of a seed: pauses begin somewhere in the time, and steps fill it."""
    draw = random.Random(seed)
    pauses = []
    at_s, ends_s = draw.uniform(2, 12), seconds
    while at_s < ends_s - 5:
        kind = draw.choice([*INSIDE, *OUTSIDE])
        length_s = round(draw.uniform(*(INSIDE | OUTSIDE)[kind]), 1)
        pauses.append({"kind": kind, "at_s": round(at_s, 1), "length_s": length_s})
        at_s += length_s + draw.uniform(4, 20) * (1 if seconds < 300 else 4)
    return {
        "seed": seed,
        "seconds": seconds,
        "ranks": draw.choice([2, 2, 3]),
        "launch": draw.choice(["torchrun", "fork", "fork", "fork"]),
        "step_s": round(0.05 * 40 ** draw.random(), 3),
        "says": draw.random() < 0.5,
        "pauses": pauses,
    }


def one_run(job: dict[str, Any]) -> dict[str, Any]:
    """Start it under the supervisor, wait for its end, read the journal."""
    folder = Path(tempfile.mkdtemp(prefix="job-"))
    (folder / "plan.json").write_text(json.dumps({**job, "port": free_port()}))
    shutil.copy(PROGRAM, folder / "train.py")
    torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
    tool = [sys.executable, "-m", "trainprobe", "run", "--case", "case", "--"]
    launch = [sys.executable, "train.py"]
    if job["launch"] == "torchrun":
        launch = [torchrun, "--standalone", "--nproc-per-node", str(job["ranks"]), "train.py"]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            [*tool, *launch],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        disturb(child, folder, job)
        code = child.wait(timeout=job["seconds"] * 4 + 300)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        for pid in (child.pid, *ranks_in(folder).values()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        child.wait()
    lines = (folder / "case" / "run.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    looks = [one for one in events if one["event"] == "looked"]
    over: dict[str, Any] = next((one for one in events if one["event"] == "over"), {})
    result = {
        **job,
        "code": code,
        "looks": [(one["verdict"], one["means"], one["took_s"], one["cpu_s"]) for one in looks],
        "alarms": [one["says"] for one in events if means(one) in ("hung", "unseen")],
        "slow": [one["says"] for one in looks if one["means"] == "slow"],
        "pace": [one["says"] for one in events if one["event"] == "pace"],
        "cpu_s": [over.get(name) for name in ("job_cpu_s", "own_cpu_s", "looks_cpu_s")],
        "steps": over.get("steps"),
        "load": round(os.getloadavg()[0] / (os.cpu_count() or 1), 1),
    }
    if result["alarms"] or result["slow"] or result["pace"] or code:
        result["folder"] = str(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def ranks_in(folder: Path) -> dict[int, int]:
    """The pids of the ranks, which they wrote down."""
    return {int(path.suffix[1:]): int(path.read_text() or 0) for path in folder.glob("pid.*")}


def disturb(child: subprocess.Popen[bytes], folder: Path, job: dict[str, Any]) -> None:
    """Stop processes for a while, as planned from the first step on."""
    while not (folder / "began").exists():
        if child.poll() is not None:
            return
        time.sleep(0.2)
    began = time.monotonic()
    for pause in job["pauses"]:
        if pause["kind"] not in OUTSIDE:
            continue
        while time.monotonic() - began < pause["at_s"]:
            if child.poll() is not None:
                return
            time.sleep(0.1)
        pids = list(ranks_in(folder).values())[:1]
        if pause["kind"] == "all_suspended":
            pids = [child.pid, *below(child.pid)]
        for number, wait_s in ((signal.SIGSTOP, pause["length_s"]), (signal.SIGCONT, 0.0)):
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            time.sleep(wait_s)


def below(pid: int) -> list[int]:
    """All that a process has started."""
    found: list[int] = []
    for task in Path("/proc", str(pid), "task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *below(int(child))]
    return found


def summary(results: list[dict[str, Any]]) -> str:
    """The figures in some lines."""
    alarms = [one for one in results if one["alarms"]]
    told = [one for one in results if one["slow"] or one["pace"]]
    looks = sum(len(one["looks"]) for one in results)
    lines = [
        (
            f"{len(results)} healthy runs of {sum(one['seconds'] for one in results) / 60:.0f} min,"
            f" {sum(len(one['pauses']) for one in results)} pauses, {looks} looks:"
            f" {len(alarms)} with an alarm, {len(told)} reported as slow,"
            f" {sum(one['code'] != 0 for one in results)} that failed themselves"
        ),
        *(f"  seed {one['seed']}: {one['alarms']} {one['pauses']}" for one in alarms),
        *(f"  seed {one['seed']}: {one['slow'] + one['pace']}" for one in told),
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the seeds and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=80.0)
    parser.add_argument("--step", type=float, help="all steps so long (s)")
    parser.add_argument("--into", type=Path, default=ROOT / ".accuracy" / "healthy_runs.jsonl")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    jobs = [drawn(seed, asked.seconds) for seed in range(int(first), int(last or first) + 1)]
    if asked.step is not None:
        jobs = [{**job, "step_s": asked.step} for job in jobs]
    asked.into.parent.mkdir(parents=True, exist_ok=True)
    results = []
    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        for result in pool.map(one_run, jobs):
            results.append(result)
            with asked.into.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            print(result["seed"], result["alarms"], result["slow"], result["pace"], flush=True)
    print(summary(results))


if __name__ == "__main__":
    main()
