"""Ranks that ended while nobody has waited for them, and ranks that were told another size of
the world.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.targets.proc_tree import ProcTree
from tests.unit.targets.test_jobs import PY, rank_env, ranks
from trainprobe.errors import UsageError
from trainprobe.targets.jobs import job_of
from trainprobe.targets.process_table import snapshot


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path / "proc")


def bare(tree: ProcTree, world: int, dead: tuple[int, ...]) -> None:
    """A starter with its ranks; those of `dead` are zombies, without command line and
    environment.
    """
    tree.add(100, 50, f"{PY} start.py", {})
    for rank in range(world):
        ended = rank in dead
        tree.add(
            110 + rank,
            100,
            [] if ended else f"{PY} train.py",
            {} if ended else rank_env(rank, world),
            name="python",
            state="Z" if ended else "S",
        )


@pytest.mark.parametrize("dead", [(0,), (1,), (3,), (1, 2), (0, 3), (2, 3)])
@pytest.mark.parametrize("which", ["alive", "dead", "starter"])
def test_a_zombie_keeps_its_place_among_its_siblings(
    tree: ProcTree, dead: tuple[int, ...], which: str
) -> None:
    bare(tree, 4, dead)
    alive = next(rank for rank in range(4) if rank not in dead)
    pid = {"alive": 110 + alive, "dead": 110 + dead[0], "starter": 100}[which]

    job = job_of(pid, tree.path)

    assert {one.pid: one.rank for one in job.ranks} == {110 + rank: rank for rank in range(4)}
    assert {one.rank for one in job.ranks if one.rank_source == "start-order"} == set(dead)
    assert (job.world_size, job.absent) == (4, ())


def test_a_zombie_without_a_place_is_no_rank_and_hides_no_absent_one(tree: ProcTree) -> None:
    bare(tree, 4, (2,))
    tree.end(111)  # reaped: whether the zombie is rank 1 or 2 nobody can tell

    job = job_of(110, tree.path)

    assert ranks(job) == {110: (0, "environment"), 113: (3, "environment")}
    assert job.absent == (1, 2)


def test_a_zombie_that_was_started_at_another_time_is_no_rank(tree: ProcTree) -> None:
    bare(tree, 3, ())
    tree.add(140, 100, [], {}, name="python", state="Z", start=9000)
    tree.add(141, 100, [], {}, name="git", state="Z")

    assert ranks(job_of(111, tree.path)).keys() == {110, 111, 112}


@pytest.mark.parametrize("name", ["python", "my-trainer"])
def test_a_zombie_alone_never_stands_for_the_program_that_started_it(
    tree: ProcTree, name: str
) -> None:
    tree.add(100, 50, f"{PY} -c serve", {})
    tree.add(110, 100, [], {}, name=name, state="Z")

    if name == "python":
        assert ranks(job_of(110, tree.path)) == {110: (0, "only-process")}
    else:
        with pytest.raises(UsageError, match="no training job"):
            job_of(110, tree.path)


def test_the_zombie_of_a_worker_belongs_to_the_job_of_its_rank(tree: ProcTree) -> None:
    tree.add(110, 50, f"{PY} train.py", rank_env(0, 2))
    tree.add(111, 50, f"{PY} train.py", rank_env(1, 2))
    tree.add(120, 110, [], {}, name="pt_data_worker", state="Z")

    assert ranks(job_of(120, tree.path)).keys() == {110, 111}


def test_an_odd_size_of_the_world_stays_with_its_siblings(tree: ProcTree) -> None:
    tree.add(100, 50, "sh run.sh", {})
    for rank in range(4):
        tree.add(
            110 + rank, 100, f"{PY} train.py", rank_env(rank, 5 if rank == 3 else 4), group=100
        )

    for pid in (110, 113):
        job = job_of(pid, tree.path)
        assert {one.pid: one.rank for one in job.ranks} == {110 + rank: rank for rank in range(4)}
        assert (job.world_size, job.absent) == (4, ())
        assert {who: values["WORLD_SIZE"] for who, values in job.environment.items()} == {
            "0": "4",
            "1": "4",
            "2": "4",
            "3": "5",
        }


def test_another_run_with_the_same_address_and_another_size_is_another_job(tree: ProcTree) -> None:
    tree.add(110, 50, f"{PY} train.py", rank_env(0, 2), session=60)
    tree.add(111, 50, f"{PY} train.py", rank_env(1, 2), session=60)
    tree.add(120, 1, f"{PY} train.py", rank_env(3, 4), session=70)

    assert ranks(job_of(110, tree.path)).keys() == {110, 111}


@pytest.mark.parametrize(
    ("program", "status"),
    [("raise SystemExit(3)", 3 << 8), ("pass", 0), ("import os; os.kill(os.getpid(), 9)", 9)],
)
def test_how_a_zombie_ended_is_read_off_the_kernel(program: str, status: int) -> None:
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert snapshot().by_pid[child.pid].wait_status == status
    assert snapshot().by_pid[os.getpid()].wait_status is None
