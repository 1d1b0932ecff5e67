"""Jobs of the real launchers: what torchrun and torch.multiprocessing leave in /proc."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.started import Started, started, until
from trainprobe.targets.jobs import LiveJob, job_of

pytestmark = pytest.mark.torch

SAYS = """
    import os

    def here(name):
        with open(f"pid.{name}.tmp", "w") as file:
            file.write(str(os.getpid()))
        os.rename(f"pid.{name}.tmp", f"pid.{name}")
"""
LOADS = """
    import os, time, torch, torch.distributed as dist
    from torch.utils.data import DataLoader
    from says import here

    attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
    if attempt == "0":
        raise SystemExit(3 if rank == "1" else 0 * time.sleep(60))
    dist.init_process_group("gloo")
    batches = iter(DataLoader(list(range(8)), num_workers=1))
    next(batches)
    here(f"rank{rank}")
    time.sleep(120)
"""
SPAWNS = """
    import time, torch, torch.distributed as dist, torch.multiprocessing as mp
    from says import here, os

    def main(place, world):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["SOME_PORT"], RANK=str(place), WORLD_SIZE=str(world))
        dist.init_process_group("gloo")
        here(f"rank{place}")
        time.sleep(120)

    if __name__ == "__main__":
        mp.spawn(main, args=(2,), nprocs=2)
"""


@pytest.fixture
def jobs(job_folder: Path, token: str) -> Iterator[Started]:
    with started(job_folder, token) as made:
        made.write("says.py", SAYS)
        yield made


def ranks(job: LiveJob) -> dict[int, tuple[int | None, str]]:
    return {one.pid: (one.rank, one.rank_source) for one in job.ranks}


def test_torchrun_in_its_second_attempt_with_loader_workers(jobs: Started) -> None:
    jobs.write("train.py", LOADS)
    launcher = jobs.start(
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        "1",
        "train.py",
    )
    pids = [jobs.pid_of(f"rank{rank}", 120) for rank in (0, 1)]

    job = job_of(pids[1])

    assert (job.launcher.kind, job.launcher.pid, job.attempt) == ("torchrun", launcher, 1)
    assert ranks(job) == {pids[0]: (0, "environment"), pids[1]: (1, "environment")}
    assert sorted((one.role, one.rank) for one in job.others if one.role != "child") == [
        ("launcher", None),
        ("loader-worker", 0),
        ("loader-worker", 1),
    ]
    assert (job.world_size, job.absent, job.elsewhere, job.nnodes, job.earlier_attempts) == (
        2,
        (),
        False,
        1,
        (),
    )
    assert (job.backend, job.device, job.script) == ("gloo", "cpu", str(jobs.folder / "train.py"))
    worker = next(one.pid for one in job.others if one.role == "loader-worker")
    assert ranks(job_of(worker)) == ranks(job)


@pytest.mark.soak
def test_ranks_of_mp_spawn(jobs: Started) -> None:
    jobs.write("train.py", SPAWNS)
    launcher = jobs.start("train.py", env={"SOME_PORT": 20000 + os.getpid() % 9000})
    pids = [jobs.pid_of(f"rank{rank}", 120) for rank in (0, 1)]
    assert until(lambda: len(job_of(launcher).ranks) == 2)

    job = job_of(pids[1])

    assert (job.launcher.kind, job.launcher.pid, job.world_size) == ("spawn", launcher, 2)
    assert ranks(job) == {pids[0]: (0, "start-order"), pids[1]: (1, "start-order")}
    assert (job.backend, job.python) == ("gloo", os.path.realpath(sys.executable))
