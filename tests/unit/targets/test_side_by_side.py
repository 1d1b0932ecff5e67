"""Ranks that a script started side by side are one job by their numbers alone; trials are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.targets.proc_tree import ProcTree
from trainprobe.targets.jobs import LiveJob, RankHint, find_jobs, job_of, with_hints

PY = "/env/bin/python"


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    made = ProcTree(tmp_path / "proc")
    made.add(50, 1, "-bash", {}, start=2)
    made.add(60, 50, "bash launch.sh", {}, start=3)
    return made


def ranks(job: LiveJob) -> dict[int, tuple[int | None, str]]:
    return {one.pid: (one.rank, one.rank_source) for one in job.ranks}


BY_SIBLINGS = {101: (0, "siblings"), 102: (1, "siblings"), 103: (2, "siblings")}


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        ("train.py", {"MY_RANK": "{}"}),
        ("train.py", {"SLURM_PROCID": "{}", "SLURM_LOCALID": "{}", "SLURM_JOB_ID": 7}),
        ("train.py --rank {}", {}),
        ("train.py --local_rank={}", {}),
        ("train.py --log logs/{}.txt --node-rank {}", {}),
        ("-m pkg.train trainer.rank={}", {}),
        ("train.py {} 3", {"MASTER_PORT": 29500}),
        ("train.py --worker {} --init-method tcp://127.0.0.1:29500", {}),
    ],
    ids=str,
)
def test_copies_that_differ_in_a_rank_are_one_job(
    tree: ProcTree, words: str, environ: dict[str, object]
) -> None:
    for number in range(3):
        told = {name: str(value).format(number) for name, value in environ.items()}
        tree.add(101 + number, 60, f"{PY} {words.format(number, number)}", told)
    for pid in (60, 101, 103):
        assert ranks(job_of(pid, tree.path)) == BY_SIBLINGS
    assert len(find_jobs(tree.path, 0)) == 1


def test_wrappers_and_shells_of_one_child_are_passed(tree: ProcTree) -> None:
    for number in range(2):
        tree.add(100 + 10 * number, 60, "bash -c cd x; train", {})
        tree.add(101 + 10 * number, 100 + 10 * number, "timeout 3600", {})
        tree.add(102 + 10 * number, 101 + 10 * number, f"{PY} train.py --dist_rank {number}", {})
    assert ranks(job_of(102, tree.path)) == {102: (0, "siblings"), 112: (1, "siblings")}


def test_copies_whose_script_is_gone_are_one_job_of_their_session(tree: ProcTree) -> None:
    for number in range(2):
        tree.add(101 + number, 1, f"{PY} train.py", {"MY_RANK": number}, session=70)
    tree.add(103, 1, f"{PY} train.py", {"MY_RANK": 2}, session=80)
    assert set(ranks(job_of(101, tree.path))) == {101, 102}


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        ("train.py --seed {}", {"CUDA_VISIBLE_DEVICES": "{}"}),
        ("train.py --fold {} --rank 8", {}),
        ("lora.py --rank {}6", {}),
        ("train.py", {"SLURM_PROCID": 0, "SLURM_ARRAY_TASK_ID": "{}"}),
        ("train.py --run {}", {"PARALLEL_SEQ": "{}"}),
    ],
    ids=str,
)
def test_trials_that_differ_in_another_number_remain_apart(
    tree: ProcTree, words: str, environ: dict[str, object]
) -> None:
    for number in range(3):
        told = {name: str(value).format(number) for name, value in environ.items()}
        tree.add(101 + number, 60, f"{PY} {words.format(number)}", told, maps="libtorch")
    assert len(find_jobs(tree.path, 0)) == 3


def test_copies_without_a_number_are_one_job_where_they_talk_and_numbered_by_their_start(
    tree: ProcTree,
) -> None:
    tree.connect(900, 901, 40000)
    for number in range(2):
        tree.add(101 + number, 60, f"{PY} train.py", {}, sockets=[900 + number])
    assert ranks(job_of(101, tree.path)) == {101: (0, "start-order"), 102: (1, "start-order")}


@pytest.mark.parametrize("apart", ["GANG_PORT", "--config", "--seed"])
def test_two_jobs_of_one_script_remain_two(tree: ProcTree, apart: str) -> None:
    for job in range(2):
        for number in range(2):
            environ = {"MY_RANK": number, **({apart: 4000 + job} if apart.isupper() else {})}
            words = f" {apart} {job + 5}" if apart.startswith("-") else ""
            tree.connect(900 + 10 * job, 901 + 10 * job, 40000 + job)
            tree.add(
                101 + 10 * job + number,
                60,
                f"{PY} train.py{words}",
                environ,
                sockets=[900 + 10 * job + number],
            )
    found = find_jobs(tree.path, 0)
    assert sorted(sorted(ranks(job)) for job in found) == [[101, 102], [111, 112]]


def test_ranks_that_were_each_given_another_port_are_one_job(tree: ProcTree) -> None:
    for number in range(3):
        environ = {
            "RANK": number,
            "WORLD_SIZE": 3,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": 2000 + number,
        }
        tree.add(101 + number, 60, f"{PY} train.py", environ)
    job = job_of(102, tree.path)
    assert {pid: rank for pid, (rank, _) in ranks(job).items()} == {101: 0, 102: 1, 103: 2}
    assert (job.world_size, job.absent) == (3, ())


def test_the_world_of_the_script_counts_until_a_frame_tells_another(tree: ProcTree) -> None:
    environ = {"SLURM_NTASKS": 3, "SLURM_NNODES": 1}
    for number in range(3):
        tree.add(101 + number, 60, f"{PY} train.py", {**environ, "SLURM_PROCID": number})
    job = job_of(101, tree.path)
    assert (job.world_size, job.world_size_source, job.absent) == (3, "siblings", ())
    told = with_hints(job, {pid: RankHint(world_size=4) for pid in (101, 102, 103)})
    assert (told.world_size, told.absent, told.elsewhere) == (4, (3,), False)


def test_a_launcher_of_the_users_own_that_numbers_by_an_argument(tree: ProcTree) -> None:
    tree.add(100, 60, f"{PY} start.py", {})
    for number in (0, 1):
        tree.add(110 + number, 100, f"{PY} train.py --proc-id {1 - number}", {})
    job = job_of(100, tree.path)
    assert (job.launcher.pid, ranks(job)) == (100, {110: (1, "siblings"), 111: (0, "siblings")})


def test_the_numbered_helpers_of_a_trainer_are_no_ranks(tree: ProcTree) -> None:
    tree.add(100, 60, f"{PY} train.py", {}, maps="libtorch")
    for number in (0, 1):
        tree.add(110 + number, 100, f"{PY} actor.py --rank {number}", {})
    assert set(ranks(job_of(100, tree.path))) == {100}
