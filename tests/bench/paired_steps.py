"""Does a job step slower under `trainprobe run`? One job, watched in every other block of some
seconds: in between the supervisor is stopped, and the job does not notice.

    python -m tests.bench.paired_steps [--pairs 40] [--block 4] [--ranks 2]

Printed is the difference of neighbouring blocks, watched minus unwatched, with the interval in which
its mean lies by 95 % (bootstrap), for the wall time and the processor time of a step.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import ROOT
from tests.gallery.live.launching import free_port

RANKS = """
import json, sys, time
import torch, torch.distributed as dist
import trainprobe

def main(rank, port, ranks):
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=rank, world_size=ranks)
    weights, number = torch.rand(128, 128), 0
    with open(f"steps.{rank}", "w", buffering=1) as file:
        while True:
            for _ in range(20):
                weights = (weights @ weights).softmax(-1)
            dist.all_reduce(weights)
            trainprobe.step(number)
            number += 1
            print(time.monotonic(), time.process_time(), file=file)

if __name__ == "__main__":
    port, ranks = int(sys.argv[1]), int(sys.argv[2])
    torch.multiprocessing.start_processes(main, (port, ranks), nprocs=ranks, start_method="fork")
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--block", type=float, default=4.0)
    parser.add_argument("--ranks", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        (Path(name) / "train.py").write_text(RANKS)
        tool = [sys.executable, "-m", "trainprobe", "run", "--case", "case", "--on-slow=ignore"]
        job = subprocess.Popen(
            [*tool, "--", sys.executable, "train.py", str(free_port()), str(asked.ranks)],
            cwd=name,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            blocks = _switched(job, Path(name), asked.pairs, asked.block)
        finally:
            os.kill(job.pid, signal.SIGCONT)
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        steps = [
            [float(word) for word in line.split()]
            for line in (Path(name) / "steps.0").read_text().splitlines()[:-1]
        ]
    print(f"load for each processor {os.getloadavg()[0] / (os.cpu_count() or 1):.1f}")
    print(json.dumps(_differences(blocks, steps), indent=1))


def _switched(
    job: subprocess.Popen[bytes], folder: Path, pairs: int, block_s: float
) -> list[tuple[bool, float, float]]:
    """Blocks: watched or not, and their beginning and end. Which comes first is drawn."""
    while not (folder / "steps.0").exists():
        time.sleep(0.2)
    time.sleep(3 * block_s)
    draw, blocks = random.Random(1), []
    for _ in range(pairs):
        first = draw.random() < 0.5
        for watched in (first, not first):
            os.kill(job.pid, signal.SIGCONT if watched else signal.SIGSTOP)
            time.sleep(0.2)
            began = time.monotonic()
            time.sleep(block_s)
            blocks.append((watched, began, time.monotonic()))
    return blocks


def _differences(
    blocks: list[tuple[bool, float, float]], steps: list[list[float]]
) -> dict[str, dict[str, float]]:
    """For the wall and the processor time of a step: its mean, and how much longer it is where it
    is watched.
    """
    found = {}
    for name, place in (("wall time", 0), ("processor time", 1)):
        means = []
        for _, began, ended in blocks:
            inside = [step for step in steps if began <= step[0] <= ended]
            means.append((inside[-1][place] - inside[0][place]) / (len(inside) - 1))
        longer = []
        for one in range(0, len(blocks), 2):
            first, second = means[one : one + 2]
            longer.append(first / second - 1 if blocks[one][0] else second / first - 1)
        draw = random.Random(2)
        drawn = sorted(statistics.mean(draw.choices(longer, k=len(longer))) for _ in range(4000))
        found[name] = {
            "step_ms": round(1000 * statistics.median(means), 3),
            "longer_median_percent": round(100 * statistics.median(longer), 3),
            "longer_mean_percent": round(100 * statistics.mean(longer), 3),
            "from_percent": round(100 * drawn[100], 3),
            "to_percent": round(100 * drawn[-100], 3),
        }
    return found


if __name__ == "__main__":
    main()
