"""What `trainprobe run` costs: its own processor time while a job of eight ranks trains, with and
without steps that are said, and the price of one `trainprobe.step`.

    python -m tests.bench.supervise [--ranks 8] [--seconds 60]

Processor time is what counts: the ranks here share few processors, and the supervisor takes the
same for each second that passes, however much of it the ranks get.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

from tests.conftest import ROOT

TICKS = os.sysconf("SC_CLK_TCK")
RANK = """
import os, sys, time
import torch, torch.distributed as dist, trainprobe
dist.init_process_group("gloo")
pause_s, says = float(sys.argv[1]), sys.argv[2] == "says"
if dist.get_rank() == 0:
    open("trains", "w").close()
number = 0
while True:
    (torch.rand(64, 64) @ torch.rand(64, 64)).sum()
    dist.all_reduce(torch.ones(4))
    time.sleep(pause_s)
    number += 1
    if says:
        trainprobe.step(number)
"""


def cpu_s(pid: int) -> float:
    """User and system time of one process, without its children."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measured(ranks: int, seconds: float, pause_s: float, *, says: bool) -> tuple[float, float]:
    """The supervisor's processor time up to the first step (s), and then for each second."""
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        (Path(name) / "train.py").write_text(RANK)
        torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
        launch = [torchrun, "--standalone", "--nproc-per-node", str(ranks), "train.py"]
        tool = [sys.executable, "-m", "trainprobe", "run", "--case", "case", "--on-slow=ignore"]
        job = subprocess.Popen(
            [*tool, "--", *launch, str(pause_s), "says" if says else "plain"],
            cwd=name,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while not (Path(name) / "trains").exists():
                if job.poll() is not None:
                    raise RuntimeError("the job ended early")
                time.sleep(0.2)
            time.sleep(5)
            first, began = cpu_s(job.pid), time.monotonic()
            time.sleep(seconds)
            return first, (cpu_s(job.pid) - first) / (time.monotonic() - began)
        finally:
            os.killpg(job.pid, signal.SIGTERM)
            job.wait()


def step_us() -> tuple[float, float]:
    """Microseconds of processor time for one `trainprobe.step`: said, and where nobody reads."""
    import trainprobe
    from trainprobe import heartbeat
    from trainprobe.supervise.heartbeats import Heartbeats

    def one() -> float:
        timer = timeit.Timer("step(7)", globals={"step": trainprobe.step}, timer=time.process_time)
        return min(timer.repeat(9, 100_000)) / 100_000 * 1e6

    os.environ.pop(heartbeat.FOLDER, None)
    heartbeat._forget()
    nothing = one()
    beats = Heartbeats()
    os.environ[heartbeat.FOLDER] = beats.folder
    heartbeat._forget()
    said = one()
    beats.close()
    return said, nothing


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    said, nothing = step_us()
    print(f"trainprobe.step: {said:.2f} us said, {nothing:.2f} us where nobody reads")
    for says, pause_s in ((False, 0.1), (True, 0.1), (True, 0.01)):
        start_s, each_s = measured(asked.ranks, asked.seconds, pause_s, says=says)
        share = each_s / asked.ranks
        print(
            f"{asked.ranks} ranks, pauses of {pause_s * 1000:g} ms, steps {'said' if says else 'not said'}:"
            f" start {start_s:.2f} s, then {each_s * 1000:.2f} ms a second,"
            f" {share:.4%} of a processor for each rank",
            flush=True,
        )


if __name__ == "__main__":
    main()
