"""The job of any of its processes, for every kind of launcher, on process tables made by hand."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.unit.targets.proc_tree import ProcTree
from trainprobe.errors import UsageError
from trainprobe.targets import process_table
from trainprobe.targets.jobs import LiveJob, RankHint, find_jobs, job_of, with_hints, without

PY = "/env/bin/python"
SPAWN = [
    PY,
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle={})",
    "--multiprocessing-fork",
]
TRACKER = [PY, "-c", "from multiprocessing.resource_tracker import main;main(4)"]


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    made = ProcTree(tmp_path / "proc")
    made.add(50, 1, "-bash", {}, start=2)
    return made


def spawn(handle: int) -> list[str]:
    return [word.format(handle) for word in SPAWN]


def rank_env(rank: int, world: int = 2, **more: object) -> dict[str, object]:
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": world,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
        **more,
    }


def elastic_env(rank: int, attempt: int = 0, world: int = 2) -> dict[str, object]:
    return rank_env(
        rank,
        world,
        TORCHELASTIC_RESTART_COUNT=attempt,
        TORCHELASTIC_RUN_ID="run7",
        GROUP_WORLD_SIZE=1,
        LOCAL_WORLD_SIZE=world,
    )


def ranks(job: LiveJob) -> dict[int, tuple[int | None, str]]:
    return {one.pid: (one.rank, one.rank_source) for one in job.ranks}


def others(job: LiveJob) -> dict[int, tuple[str, int | None]]:
    return {one.pid: (one.role, one.rank) for one in job.others}


def torchrun(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/torchrun --nproc-per-node 2 train.py --lr 1", {})
    for rank in (0, 1):
        tree.add(
            110 + rank,
            100,
            f"{PY} -u train.py --lr 1",
            elastic_env(rank),
            maps="/env/libtorch_cpu.so",
            threads=["pt_gloo_runloop"],
        )
    tree.add(120, 111, f"{PY} -u train.py --lr 1", elastic_env(1), name="pt_data_worker")
    tree.add(121, 111, TRACKER, elastic_env(1))
    tree.add(
        122,
        110,
        f"{PY} /env/torch/_inductor/compile_worker/__main__.py --kind=fork --workers=2"
        " --parent=110",
        elastic_env(0),
    )
    tree.add(
        123,
        122,
        f"{PY} /env/torch/_inductor/compile_worker/__main__.py --kind=fork --workers=2"
        " --parent=110",
        elastic_env(0),
    )
    tree.add(124, 111, "wandb-core --port-filename x", elastic_env(1))
    tree.add(125, 110, "ninja -v", elastic_env(0))
    tree.add(126, 125, "/usr/bin/x86_64-linux-gnu-g++-12 -c op.cpp", elastic_env(0))


@pytest.mark.parametrize("pid", [100, 110, 111, 120, 121, 123, 124, 126])
def test_torchrun_is_found_whole_from_any_of_its_processes(tree: ProcTree, pid: int) -> None:
    torchrun(tree)

    job = job_of(pid, tree.path)

    assert (job.launcher.kind, job.launcher.pid, job.pid) == ("torchrun", 100, 100)
    assert ranks(job) == {110: (0, "environment"), 111: (1, "environment")}
    assert others(job) == {
        100: ("launcher", None),
        120: ("loader-worker", 1),
        121: ("child", 1),
        122: ("compiler", 0),
        123: ("compiler", 0),
        124: ("child", 1),
        125: ("compiler", 0),
        126: ("compiler", 0),
    }
    assert (job.world_size, job.world_size_source, job.absent, job.attempt, job.nnodes) == (
        2,
        "environment",
        (),
        0,
        1,
    )
    assert (job.script, job.cwd, job.backend, job.device) == (
        "/job/train.py",
        "/job",
        "gloo",
        "cpu",
    )
    assert job.began == pytest.approx(1700000000 + 11.1)


def test_what_a_shell_started_before_it_became_the_launcher_is_no_rank(tree: ProcTree) -> None:
    torchrun(tree)
    tree.add(105, 100, [PY, "-u", "/job/mirror.py", "--port", "8000"], {"HOME": "/root"})

    job = job_of(100, tree.path)

    assert set(ranks(job)) == {110, 111}
    assert others(job)[105] == ("child", None)


def test_the_record_has_the_shape_of_the_contract(tree: ProcTree) -> None:
    torchrun(tree)

    data = job_of(100, tree.path).as_data()

    assert json.loads(json.dumps(data)) == data
    assert data["launcher"] == {
        "kind": "torchrun",
        "pid": 100,
        "started_ticks": 1100,
        "cmdline": f"{PY} /env/bin/torchrun --nproc-per-node 2 train.py --lr 1",
    }
    assert data["ranks"][1] == {
        "rank": 1,
        "rank_source": "environment",
        "local_rank": 1,
        "pid": 111,
        "started_ticks": 1111,
        "nspid": [111],
        "uid": 1000,
        "attempt": 0,
        "cmdline": f"{PY} -u train.py --lr 1",
    }
    assert {
        "pid": 120,
        "started_ticks": 1120,
        "role": "loader-worker",
        "rank": 1,
        "cmdline": f"{PY} -u train.py --lr 1",
        "ppid": 111,
    } in data["others"]


def test_only_allowed_variables_are_written_down(tree: ProcTree) -> None:
    tree.add(
        60,
        50,
        f"{PY} train.py",
        rank_env(0, 1, WANDB_API_KEY="s3cret", NCCL_DEBUG="INFO", HF_TOKEN="hf_x", SLURM_JOB_ID=12),
    )

    told = job_of(60, tree.path).as_data()["environment"]

    assert told == {
        "0": {
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "NCCL_DEBUG": "INFO",
            "RANK": "0",
            "SLURM_JOB_ID": "12",
            "WORLD_SIZE": "1",
        }
    }


def test_cleared_environments_leave_the_launcher_and_the_order_of_start(tree: ProcTree) -> None:
    tree.add(
        100,
        50,
        f"{PY} -m torch.distributed.run --nnodes=2 --node_rank=1 --nproc_per_node=2 train.py",
        {},
    )
    tree.add(110, 100, "training-worker", {}, exe="/env/bin/python3.11", start=2002)
    tree.add(111, 100, "training-worker", None, exe="/env/bin/python3.11", start=2001)

    job = job_of(110, tree.path)

    assert ranks(job) == {111: (2, "start-order"), 110: (3, "start-order")}
    assert (job.world_size, job.world_size_source, job.nnodes, job.absent, job.elsewhere) == (
        4,
        "arguments",
        2,
        (0, 1),
        True,
    )


def test_a_number_is_left_open_when_a_rank_of_cleared_environments_is_missing(
    tree: ProcTree,
) -> None:
    tree.add(100, 50, f"{PY} -m torch.distributed.run --nproc_per_node=3 train.py", {})
    tree.add(110, 100, f"{PY} -u train.py", {})
    tree.add(111, 100, f"{PY} -u train.py", {})

    job = job_of(100, tree.path)

    assert ranks(job) == {110: (None, ""), 111: (None, "")}
    assert (job.world_size, job.absent) == (3, ())


def test_what_a_rank_set_itself_stands_in_the_environment_of_its_children(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} -m torch.distributed.run --nproc_per_node=2 train.py", {})
    tree.add(110, 100, f"{PY} -u train.py", {})
    tree.add(111, 100, f"{PY} -u train.py", {})
    tree.add(112, 110, TRACKER, elastic_env(1))

    assert ranks(job_of(100, tree.path)) == {110: (1, "environment"), 111: (0, "start-order")}


def test_the_rank_is_the_python_behind_its_wrappers(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/torchrun --nproc-per-node 2 --no-python run.sh", {})
    for rank in (0, 1):
        tree.add(110 + rank, 100, "bash run.sh", elastic_env(rank))
        tree.add(
            120 + rank, 110 + rank, "/opt/nsys profile -o x python train.py", elastic_env(rank)
        )
        tree.add(
            130 + rank, 120 + rank, f"{PY} -m debugpy --listen 5678 train.py", elastic_env(rank)
        )
        tree.add(140 + rank, 110 + rank, "tee log.txt", elastic_env(rank))

    job = job_of(141, tree.path)

    assert ranks(job) == {130: (0, "environment"), 131: (1, "environment")}
    assert others(job)[110] == ("launcher", 0)
    assert others(job)[121] == ("launcher", 1)
    assert others(job)[141] == ("child", None)
    assert job.script == "/job/train.py"


def test_an_earlier_attempt_is_kept_apart(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/torchrun --nproc-per-node 2 --max-restarts 3 train.py", {})
    tree.add(110, 100, f"{PY} -u train.py", elastic_env(0, 0), state="D")
    tree.add(112, 1, f"{PY} -u train.py", elastic_env(1, 0), name="pt_data_worker")
    tree.add(120, 100, f"{PY} -u train.py", elastic_env(0, 1))
    tree.add(121, 100, f"{PY} -u train.py", elastic_env(1, 1))

    job = job_of(100, tree.path)

    assert ranks(job) == {120: (0, "environment"), 121: (1, "environment")}
    assert job.attempt == 1
    assert [(one.pid, one.attempt) for one in job.earlier_attempts] == [(110, 0), (112, 0)]
    assert 110 not in others(job)
    assert job.leftovers == ()


def test_leftovers_of_another_run_are_named_and_are_no_ranks(tree: ProcTree) -> None:
    for rank in (0, 1):
        tree.add(60 + rank, 1, f"{PY} train.py", rank_env(rank), group=59, session=59)
        tree.add(100 + rank, 50, f"{PY} train.py", rank_env(rank), group=99)
    tree.add(70, 1, f"{PY} train.py", rank_env(0), group=69, session=59, uid=2000)
    tree.add(71, 1, f"{PY} other.py", rank_env(0), group=71, session=59)

    job = job_of(101, tree.path)

    assert ranks(job) == {100: (0, "environment"), 101: (1, "environment")}
    assert [one.pid for one in job.leftovers] == [60]
    assert job.leftovers[0].age_s == pytest.approx(1000 - 10.6)


def test_accelerate(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/accelerate launch --multi_gpu --num_processes 2 train.py", {})
    for rank in (0, 1):
        tree.add(110 + rank, 100, f"{PY} -u train.py", elastic_env(rank))
    tree.add(200, 50, f"{PY} /env/bin/accelerate launch --cpu --num_processes=2 one.py", {})
    tree.add(210, 200, f"{PY} one.py", {"ACCELERATE_MIXED_PRECISION": "no"})

    assert (job_of(110, tree.path).launcher.kind, len(job_of(110, tree.path).ranks)) == (
        "accelerate",
        2,
    )
    single = job_of(210, tree.path)
    assert (single.launcher.kind, ranks(single), single.world_size) == (
        "accelerate",
        {210: (0, "only-process")},
        1,
    )


def test_deepspeed(tree: ProcTree) -> None:
    world = base64.urlsafe_b64encode(json.dumps({"localhost": [0, 1]}).encode()).decode()
    tree.add(100, 50, f"{PY} /env/bin/deepspeed --num_gpus 2 train.py", {})
    tree.add(
        105,
        100,
        f"{PY} -u -m deepspeed.launcher.launch --world_info={world} --master_addr=127.0.0.1"
        " --master_port=29500 train.py",
        {},
    )
    for rank in (0, 1):
        tree.add(110 + rank, 105, f"{PY} -u train.py --local_rank={rank}", {})

    job = job_of(111, tree.path)

    assert (job.launcher.kind, job.launcher.pid, job.world_size, job.world_size_source) == (
        "deepspeed",
        100,
        2,
        "arguments",
    )
    assert ranks(job) == {110: (0, "arguments"), 111: (1, "arguments")}
    assert others(job)[105] == ("launcher", None)


def test_mpirun(tree: ProcTree) -> None:
    tree.add(100, 50, "mpirun -np 2 python train.py", {})
    for rank in (0, 1):
        env = {
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_SIZE": 2,
            "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        }
        tree.add(110 + rank, 100, "python train.py", env)

    job = job_of(110, tree.path)

    assert (job.launcher.kind, job.world_size, ranks(job)) == (
        "mpirun",
        2,
        {110: (0, "environment"), 111: (1, "environment")},
    )


def test_slurm_tasks_with_ranks_on_other_hosts(tree: ProcTree) -> None:
    tree.add(100, 1, "slurmstepd: [12.0]", {}, uid=0)
    for task in (4, 5):
        env = {
            "SLURM_PROCID": task,
            "SLURM_LOCALID": task - 4,
            "SLURM_NTASKS": 8,
            "SLURM_STEP_ID": 0,
            "SLURM_NNODES": 2,
        }
        tree.add(110 + task, 100, f"{PY} train.py", env)

    job = job_of(114, tree.path)

    assert (job.launcher.kind, ranks(job)) == (
        "slurm",
        {114: (4, "scheduler"), 115: (5, "scheduler")},
    )
    assert (job.world_size, job.world_size_source, job.absent, job.elsewhere) == (
        8,
        "scheduler",
        (0, 1, 2, 3, 6, 7),
        True,
    )


def test_a_look_that_slurm_started_is_no_job(tree: ProcTree) -> None:
    look = [PY, "-c", "from trainprobe.cli import main; main()", "look-here", "--slurm-job", "12"]
    for step, pid, argv in (
        (1, 110, look),
        (2, os.getpid(), [PY, "/env/bin/trainprobe", "attach"]),
    ):
        tree.add(100 + step, 1, f"slurmstepd: [12.{step}]", {}, uid=0)
        tree.add(
            pid, 100 + step, argv, {"SLURM_PROCID": 0, "SLURM_NTASKS": 1, "SLURM_STEP_ID": step}
        )

    assert find_jobs(uid=1000, proc=tree.path) == ()


def test_torchrun_of_srun_without_ranks_is_no_rank_itself(tree: ProcTree) -> None:
    tree.add(100, 1, "slurmstepd: [12.0]", {}, uid=0)
    slurm = {"SLURM_PROCID": 1, "SLURM_NTASKS": 3, "SLURM_STEP_ID": 0}
    tree.add(101, 100, f"{PY} /env/bin/torchrun --nnodes 3 --nproc-per-node 2 train.py", slurm)

    (job,) = find_jobs(uid=1000, proc=tree.path)

    assert (job.launcher.kind, job.launcher.pid, job.ranks) == ("torchrun", 101, ())


def test_srun_of_torchrun_is_torchrun(tree: ProcTree) -> None:
    tree.add(100, 1, "slurmstepd: [12.0]", {}, uid=0)
    slurm = {"SLURM_PROCID": 1, "SLURM_NTASKS": 2, "SLURM_STEP_ID": 0}
    tree.add(101, 100, f"{PY} /env/bin/torchrun --nnodes 2 --nproc-per-node 2 train.py", slurm)
    for rank in (2, 3):
        tree.add(
            110 + rank,
            101,
            f"{PY} -u train.py",
            {**slurm, **elastic_env(rank, world=4), "LOCAL_WORLD_SIZE": 2},
        )

    job = job_of(113, tree.path)

    assert (job.launcher.kind, job.launcher.pid, job.world_size) == ("torchrun", 101, 4)
    assert ranks(job) == {112: (2, "environment"), 113: (3, "environment")}
    assert (job.absent, job.elsewhere) == ((0, 1), True)


def test_a_batch_script_of_slurm_is_no_task(tree: ProcTree) -> None:
    tree.add(100, 1, "slurmstepd: [12.batch]", {}, uid=0)
    tree.add(101, 100, "/bin/bash /var/spool/slurm_script", {})
    tree.add(102, 101, f"{PY} train.py", {"SLURM_PROCID": 0, "SLURM_NTASKS": 8})

    job = job_of(102, tree.path)

    assert (job.world_size, ranks(job)) == (1, {102: (0, "only-process")})


def test_spawned_ranks_by_the_address_that_their_parent_set(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", {"HOME": "/root"})
    tree.add(101, 100, TRACKER, {})
    for place in (0, 1, 2):
        tree.add(
            110 + place,
            100,
            spawn(9 + 2 * place),
            {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501},
        )
    tree.add(
        120,
        111,
        spawn(12),
        {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501},
        name="pt_data_worker",
    )

    job = job_of(120, tree.path)

    assert (job.launcher.kind, job.launcher.pid) == ("spawn", 100)
    assert ranks(job) == {110: (0, "start-order"), 111: (1, "start-order"), 112: (2, "start-order")}
    assert (job.world_size, others(job)[120], job.script) == (
        3,
        ("loader-worker", 1),
        "/job/train.py",
    )


@pytest.mark.parametrize(
    ("words", "source"), [("--world-size 4", "arguments"), ("", "start-order")]
)
def test_spawned_ranks_by_their_connections_and_a_gap_by_the_handles(
    tree: ProcTree, words: str, source: str
) -> None:
    tree.add(100, 50, f"{PY} train.py {words}", {})
    tree.add(110, 100, spawn(9), {}, sockets=[1])
    tree.add(112, 100, spawn(14), {}, sockets=[2])
    tree.add(113, 100, spawn(16), {})
    tree.connect(1, 2, 40000)

    job = job_of(100, tree.path)

    assert ranks(job) == {110: (0, "start-order"), 112: (2, "start-order"), 113: (3, "start-order")}
    assert (job.world_size, job.world_size_source, job.absent) == (4, source, (1,))


def test_a_server_that_was_forked_beside_spawned_ranks_is_none(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} main.py", {})
    tree.add(101, 100, f"{PY} main.py", {}, sockets=[3])
    loops = ["pt_gloo_runloop"]
    tree.add(110, 100, spawn(9), {}, sockets=[1, 4], threads=loops)
    tree.add(111, 100, spawn(11), {}, sockets=[2], threads=loops)
    tree.connect(1, 2, 40000)
    tree.connect(3, 4, 40001)

    job = job_of(100, tree.path)

    assert (set(ranks(job)), job.world_size) == ({110, 111}, 2)
    assert others(job)[101][0] in ("child", "loader-worker")


def test_forked_ranks_talk_and_forked_workers_do_not(tree: ProcTree) -> None:
    for top in (100, 200):
        tree.add(top, 50, f"{PY} train{top}.py", {})
        tree.add(top + 1, top, f"{PY} train{top}.py", {}, sockets=[top + 1])
        tree.add(top + 2, top, f"{PY} train{top}.py", {}, sockets=[top + 2])
    tree.connect(101, 102, 40000)

    assert ranks(job_of(100, tree.path)) == {101: (0, "start-order"), 102: (1, "start-order")}
    workers = job_of(201, tree.path)
    assert (ranks(workers), others(workers)) == (
        {200: (0, "only-process")},
        {201: ("loader-worker", 0), 202: ("loader-worker", 0)},
    )


def test_the_rank_that_a_spawning_parent_inherited_is_not_that_of_its_children(
    tree: ProcTree,
) -> None:
    tree.add(100, 50, f"{PY} main.py --multiprocessing-distributed", {"RANK": 0, "WORLD_SIZE": 1})
    for place in (0, 1):
        tree.add(
            110 + place,
            100,
            spawn(9 + 2 * place),
            {"RANK": 0, "WORLD_SIZE": 1},
            sockets=[1 + place],
        )
    tree.connect(1, 2, 40000)

    job = job_of(100, tree.path)

    assert (ranks(job), job.world_size) == ({110: (0, "start-order"), 111: (1, "start-order")}, 2)


def test_a_rank_that_starts_the_others_as_the_same_command(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", {})
    tree.add(
        110,
        100,
        f"{PY} train.py",
        {
            "LOCAL_RANK": 1,
            "NODE_RANK": 0,
            "WORLD_SIZE": 2,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": 29500,
        },
    )

    for pid in (100, 110):
        job = job_of(pid, tree.path)
        assert ranks(job) == {100: (0, "start-order"), 110: (1, "environment")}
        assert (job.world_size, job.absent) == (2, ())


def test_such_a_rank_has_loader_workers_and_helpers_beside_the_others(tree: ProcTree) -> None:
    second = {"LOCAL_RANK": 1, "NODE_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1"}
    tree.add(100, 50, f"{PY} train.py", {})
    tree.add(110, 100, f"{PY} train.py", {**second, "MASTER_PORT": 29500})
    tree.add(120, 100, f"{PY} train.py", {}, name="pt_data_worker")
    tree.add(130, 110, f"{PY} -c compile_worker.main()", {**second, "MASTER_PORT": 29500})

    for pid in (100, 110):
        job = job_of(pid, tree.path)
        assert ranks(job) == {100: (0, "start-order"), 110: (1, "environment")}
        assert others(job)[120] == ("loader-worker", 0)


def test_a_worker_that_is_still_starting_is_no_rank_beside_lightnings(tree: ProcTree) -> None:
    """Rank 0 has put its own number into its environment by then, and its workers inherit that."""
    second = {"LOCAL_RANK": 1, "NODE_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1"}
    address = {"MASTER_PORT": 29500}
    loops = ["pt_gloo_runloop"]
    tree.add(100, 50, f"{PY} train.py", {}, threads=loops)
    tree.add(110, 100, f"{PY} train.py", {**second, **address}, threads=loops)
    tree.add(120, 100, spawn(9), {**second, **address, "LOCAL_RANK": 0})

    job = job_of(100, tree.path)

    assert set(ranks(job)) == {100, 110}
    assert others(job)[120] == ("loader-worker", 0)


def test_spawned_ranks_whose_launcher_is_gone(tree: ProcTree) -> None:
    for place in (0, 1):
        tree.add(110 + place, 1, spawn(9 + 2 * place), {}, group=100)

    job = job_of(111, tree.path)

    assert (job.launcher.kind, job.launcher.pid, [one.pid for one in job.ranks]) == (
        "spawn",
        None,
        [110, 111],
    )


def test_bare_ranks_are_grouped_by_address(tree: ProcTree) -> None:
    for rank in (0, 1, 3):
        tree.add(100 + rank, 50, f"{PY} train.py", rank_env(rank, 4))
    tree.add(120, 101, f"{PY} train.py", rank_env(1, 4))
    tree.add(130, 50, f"{PY} train.py", rank_env(2, 4, MASTER_PORT=29999))
    tree.add(
        131,
        50,
        f"{PY} train.py",
        rank_env(2, 4),
        namespaces={"net": "net:[2]", "mnt": "mnt:[1]", "pid": "pid:[1]"},
    )

    job = job_of(120, tree.path)

    assert (job.launcher.kind, job.launcher.pid, sorted(ranks(job))) == (
        "bare",
        None,
        [100, 101, 103],
    )
    assert (job.absent, job.elsewhere, others(job)) == ((2,), False, {120: ("loader-worker", 1)})


def test_what_a_numbered_rank_spawns_for_itself_is_no_rank(tree: ProcTree) -> None:
    """As a process that writes checkpoints and has a store of its own."""
    for rank in (0, 1, 2):
        tree.add(100 + rank, 50, f"{PY} train.py", rank_env(rank, 3))
        inodes = (900 + rank, 910 + rank)
        tree.add(110 + rank, 100 + rank, spawn(9), rank_env(rank, 3), sockets=inodes)
        tree.connect(*inodes, 40000 + rank)

    job = job_of(100, tree.path)

    assert (job.launcher.kind, sorted(ranks(job)), job.absent) == ("bare", [100, 101, 102], ())


def test_bare_ranks_by_their_arguments(tree: ProcTree) -> None:
    for rank in (0, 1):
        tree.add(100 + rank, 50, f"{PY} train.py --rank {rank} --world-size 2", {})

    job = job_of(100, tree.path)

    assert (ranks(job), job.world_size) == ({100: (0, "arguments"), 101: (1, "arguments")}, 2)


def test_the_rank_of_an_adapter_is_none(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} finetune.py --rank 16 --lora", {})

    job = job_of(100, tree.path)

    assert (job.launcher.kind, ranks(job)) == ("single", {100: (0, "only-process")})


def test_two_launchers_of_one_job_on_one_host(tree: ProcTree) -> None:
    for node in (0, 1):
        tree.add(
            100 + node,
            50,
            f"{PY} /env/bin/torchrun --nnodes 2 --node-rank {node} --nproc-per-node 1 --rdzv-id j"
            " train.py",
            {},
        )
        env = {**elastic_env(node), "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "GROUP_WORLD_SIZE": 2}
        tree.add(110 + node, 100 + node, f"{PY} -u train.py", env)

    job = job_of(100, tree.path)

    assert (ranks(job), job.absent) == ({110: (0, "environment"), 111: (1, "environment")}, ())


def agents(tree: ProcTree, *told: str, session: int = 50) -> None:
    """Agents without a rank, each below a shell of its own."""
    for place, options in enumerate(told):
        tree.add(90 + place, 50, "bash node.sh", {}, session=session + place)
        command = f"{PY} /env/bin/torchrun --nnodes 2 --nproc-per-node 2 {options} train.py --lr 1"
        tree.add(100 + place, 90 + place, command, {}, session=session + place)


@pytest.mark.parametrize(
    ("first", "second", "session"),
    [
        ("--rdzv-id 7 --rdzv-endpoint a:1", "--rdzv-id 8 --rdzv-endpoint a:1", 50),
        ("--node_rank=0 --master-addr a", "--node_rank=0 --master-addr a", 60),
    ],
)
def test_agents_of_one_job_that_have_no_rank_yet_are_one_job(
    tree: ProcTree, first: str, second: str, session: int
) -> None:
    agents(tree, first, second, session=session)

    job = job_of(50, tree.path)

    assert others(job) == {100: ("launcher", None), 101: ("launcher", None)}
    assert (job.below, job.nnodes, len(find_jobs(tree.path, uid=1000))) == ("-bash 50", 2, 1)
    assert others(job_of(101, tree.path)) == others(job)


@pytest.mark.parametrize(
    "second", ["--rdzv-endpoint b:1", "--max-restarts 3 --rdzv-endpoint a:1", "--nnodes 4"]
)
def test_agents_of_another_command_or_place_are_another_job(tree: ProcTree, second: str) -> None:
    agents(tree, "--rdzv-endpoint a:1", second, session=60)

    with pytest.raises(UsageError, match=r"below it run 2\."):
        job_of(50, tree.path)


def test_ray_workers_have_no_number_until_their_frames_tell(tree: ProcTree) -> None:
    tree.add(90, 1, "/env/ray/raylet --port 1", {})
    for place in (0, 1):
        tree.add(
            100 + place,
            90,
            ["ray::RayTrainWorker._RayTrainWorker__execute()"],
            {},
            exe="/env/bin/python3.11",
        )
    tree.add(110, 90, ["ray::IDLE"], {}, exe="/env/bin/python3.11")

    job = job_of(100, tree.path)
    told = with_hints(job, {100: RankHint(1, 1, 2), 101: RankHint(0, 0, 2)})

    assert (job.launcher.kind, job.launcher.pid, job.pid, ranks(job)) == (
        "ray",
        90,
        100,
        {100: (None, ""), 101: (None, "")},
    )
    assert ranks(job_of(90, tree.path)) == ranks(job)
    assert ranks(told) == {101: (0, "frame-locals"), 100: (1, "frame-locals")}
    assert (told.world_size, told.world_size_source, told.absent) == (2, "frame-locals", ())


def test_what_the_launcher_started_beside_its_ranks_is_none_of_them(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", {})
    for place, handle in ((0, 6), (1, 8), (2, 10)):
        tree.add(
            110 + place, 100, spawn(handle), {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501}
        )

    told = with_hints(without(job_of(100, tree.path), {110}), {111: RankHint(0), 112: RankHint(1)})

    assert ranks(told) == {111: (0, "frame-locals"), 112: (1, "frame-locals")}
    assert (told.world_size, told.absent) == (2, ())
    assert [(one.pid, one.role) for one in told.others if one.pid == 110] == [(110, "child")]


def test_the_driver_of_ray_actors_stands_for_those_that_train(tree: ProcTree) -> None:
    tree.add(80, 50, f"{PY} train.py", {}, threads=["gcs_client_io_s"])
    tree.add(90, 80, "/env/ray/raylet --port 1", {})
    tree.add(91, 90, ["ray::DashboardAgent"], {}, exe="/env/bin/python3.11")
    for pid, actor in ((100, "Head"), (101, "Trainer")):
        tree.add(
            *(pid, 90, [f"ray::{actor}.fit"], {}),
            exe="/env/bin/python3.11",
            threads=["pt_gloo_runloop"],
        )
    tree.add(110, 90, ["ray::Loader.read"], {}, exe="/env/bin/python3.11")

    found = {frozenset(ranks(job_of(pid, tree.path))) for pid in (80, 90, 100, 101)}

    assert found == {frozenset({100, 101})}
    listed = {frozenset(ranks(job)) for job in find_jobs(tree.path, 1000)}
    assert listed == {frozenset({100, 101}), frozenset({110})}


def test_the_size_that_torch_reads_counts_more_than_the_number_of_tasks(tree: ProcTree) -> None:
    tree.add(90, 1, "slurmstepd: [7.0]", {})
    for rank in range(2):
        env = {"SLURM_PROCID": rank, "SLURM_NTASKS": 2, "SLURM_STEP_ID": 0, "WORLD_SIZE": 3}
        place = {"MASTER_ADDR": "node1", "MASTER_PORT": 29500}
        tree.add(100 + rank, 90, f"{PY} train.py", {**env, **place})

    job = job_of(100, tree.path)

    assert (job.world_size, job.absent) == (3, (2,))


def test_ranks_that_outlive_their_launcher_are_orphaned(tree: ProcTree) -> None:
    torchrun(tree)
    assert job_of(110, tree.path).orphaned == ()
    for rank in (0, 1):
        tree.add(210 + rank, 1, f"{PY} other.py", elastic_env(rank) | {"MASTER_PORT": 29501})

    assert job_of(210, tree.path).orphaned == (210, 211)


def test_a_single_process_and_its_workers(tree: ProcTree) -> None:
    tree.add(90, 50, f"{PY} /env/bin/jupyter-lab", {})
    tree.add(
        100,
        90,
        f"{PY} -m ipykernel_launcher -f k.json",
        {},
        maps="/env/libtorch_python.so",
        opens=["/dev/nvidia0"],
    )
    tree.add(101, 100, spawn(9), {}, name="pt_data_worker")

    job = job_of(101, tree.path)

    assert (job.launcher.kind, job.pid, ranks(job), others(job)) == (
        "single",
        100,
        {100: (0, "only-process")},
        {101: ("loader-worker", 0)},
    )
    assert (job.world_size, job.script, job.device) == (1, "-m ipykernel_launcher", "cuda")


def test_a_hint_is_no_match_for_the_environment(tree: ProcTree) -> None:
    torchrun(tree)

    job = with_hints(job_of(100, tree.path), {110: RankHint(1, world_size=8)})

    assert (ranks(job), job.world_size) == ({110: (0, "environment"), 111: (1, "environment")}, 2)


def test_hints_turn_what_looked_like_workers_into_ranks(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", {})
    for place in (0, 1):
        tree.add(110 + place, 100, spawn(9 + 2 * place), {})

    job = with_hints(job_of(100, tree.path), {110: RankHint(0), 111: RankHint(1)})

    assert (job.launcher.kind, job.launcher.pid, job.world_size) == ("spawn", 100, 2)
    assert ranks(job) == {110: (0, "frame-locals"), 111: (1, "frame-locals")}
    assert others(job) == {100: ("launcher", None)}


def test_of_two_hints_with_one_number_neither_is_believed(tree: ProcTree) -> None:
    tree.add(90, 1, "/env/ray/raylet --port 1", {})
    for place in (0, 1):
        tree.add(100 + place, 90, ["ray::RayTrainWorker.run()"], {}, exe="/env/bin/python3.11")

    job = with_hints(job_of(100, tree.path), {100: RankHint(1), 101: RankHint(1)})

    assert ranks(job) == {100: (None, ""), 101: (None, "")}


def test_a_number_beyond_the_world_is_dropped(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/torchrun --nproc-per-node 2 train.py", {})
    tree.add(110, 100, f"{PY} -u train.py", elastic_env(0))
    tree.add(111, 100, f"{PY} -u train.py", elastic_env(7))

    assert ranks(job_of(100, tree.path)) == {110: (0, "environment"), 111: (1, "start-order")}


def test_a_container_seen_from_the_host(tree: ProcTree) -> None:
    inside = {"mnt": "mnt:[9]", "pid": "pid:[9]", "net": "net:[9]"}
    tree.add(
        100,
        1,
        f"{PY} train.py",
        rank_env(0),
        nspid=(100, 7),
        namespaces=inside,
        cgroup=f"0::/system.slice/docker-{'3f2a9c1b' * 8}.scope",
    )

    job = job_of(100, tree.path)

    assert (job.container, job.ranks[0].nspid) == ("docker 3f2a9c1b3f2a", (100, 7))


@pytest.mark.parametrize("wrapper", ["-bash", "make run", "tmux", "/usr/bin/time -v", "srun -n 2"])
def test_the_only_job_below_a_wrapper_is_meant(tree: ProcTree, wrapper: str) -> None:
    tree.add(40, 30, f"{PY} sweep.py", {}, start=1)
    tree.add(41, 40, wrapper, {}, start=2)
    tree.end(50)
    tree.add(50, 41, "-bash", {}, start=3)
    torchrun(tree)

    job = job_of(41, tree.path)

    assert (job.pid, len(job.ranks)) == (100, 2)
    assert job.below == f"{wrapper.split(maxsplit=1)[0].rpartition('/')[2]} 41"
    assert not job_of(100, tree.path).below


def test_what_a_script_has_launched_is_meant_by_its_pid(tree: ProcTree) -> None:
    tree.end(50)
    tree.add(50, 1, f"{PY} run.py", {}, start=3)
    tree.add(60, 50, f"{PY} shard_server.py", {}, start=4)
    torchrun(tree)

    job = job_of(50, tree.path)

    assert (job.launcher.kind, job.pid, len(job.ranks)) == ("torchrun", 100, 2)
    assert job.below.endswith(" 50")


def test_of_several_jobs_below_a_shell_each_gets_a_command(tree: ProcTree) -> None:
    torchrun(tree)
    tree.add(300, 50, f"{PY} other.py", {}, maps="libtorch")

    with pytest.raises(UsageError) as two:
        job_of(50, tree.path)

    assert "below it run 2." in str(two.value)
    assert "\n  100  torchrun, ranks 0-1, /job/train.py" in str(two.value)
    assert "\n  300  single, 1 rank, /job/other.py" in str(two.value)
    assert two.value.do == "Name one: trainprobe attach 300"
    with pytest.raises(UsageError, match="There is no process 4711"):
        job_of(4711, tree.path)


def test_a_compiler_below_a_rank_is_of_that_job(tree: ProcTree) -> None:
    torchrun(tree)
    tree.add(130, 110, "make -j", elastic_env(0))
    tree.add(131, 130, f"{PY} generate.py", elastic_env(0))

    assert job_of(130, tree.path).pid == 100
    assert ranks(job_of(130, tree.path)).keys() == {110, 111}


def test_a_fork_that_trains_in_place_of_a_rank_is_the_rank(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/torchrun --nproc-per-node 2 train.py", {})
    for rank in (0, 1):
        guard, trains, watches = 110 + rank, 120 + rank, 130 + rank
        tree.add(guard, 100, f"{PY} train.py", elastic_env(rank))
        tree.add(trains, guard, f"{PY} train.py", elastic_env(rank), threads=["gloo_tcp_loop"])
        tree.add(watches, guard, f"{PY} train.py", elastic_env(rank))

    assert ranks(job_of(100, tree.path)).keys() == {120, 121}


def test_a_fork_beside_a_rank_that_trains_is_none(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} /env/bin/torchrun --nproc-per-node 2 train.py", {})
    for rank in (0, 1):
        trains, forked = 110 + rank, 120 + rank
        tree.add(trains, 100, f"{PY} train.py", elastic_env(rank), threads=["gloo_tcp_loop"])
        tree.add(forked, trains, f"{PY} train.py", elastic_env(rank), threads=["gloo_tcp_loop"])

    assert ranks(job_of(100, tree.path)).keys() == {110, 111}


@pytest.mark.parametrize("children", ["spawned", "started"])
def test_a_parent_with_a_process_group_is_rank_0(tree: ProcTree, children: str) -> None:
    tree.connect(900, 901, 40000)
    gloo = ["gloo_tcp_loop"]
    tree.add(100, 50, f"{PY} train.py 24000", {}, threads=gloo, sockets=[900])
    for rank in (1, 2):
        command = (
            spawn(rank) if children == "spawned" else [PY, "/job/train.py", "24000", str(rank)]
        )
        tree.add(100 + rank, 100, command, {}, threads=gloo, sockets=[900 + rank])

    job = job_of(101, tree.path)

    assert (job.launcher.kind, job.launcher.pid) == ("spawn", 100)
    assert [one.pid for one in job.ranks if one.rank == 0] == [100]
    assert {one.pid for one in job.ranks} == {100, 101, 102}


def test_a_fork_that_outlives_its_rank_is_not_that_rank(tree: ProcTree) -> None:
    for rank in (0, 1):
        tree.add(100 + rank, 50, f"{PY} train.py", rank_env(rank, 3), threads=["gloo_tcp_loop"])
    tree.add(140, 1, f"{PY} train.py", rank_env(2, 3), start=2000)

    job = job_of(100, tree.path)

    assert (set(ranks(job)), job.absent) == ({100, 101}, (2,))
    assert others(job) == {140: ("child", 2)}


def test_a_rank_that_was_started_later_by_somebody_else_is_one(tree: ProcTree) -> None:
    for rank, parent, start in ((0, 50, 1100), (1, 1, 2000)):
        threads = ["gloo_tcp_loop"]
        env = rank_env(rank, 2)
        tree.add(100 + rank, parent, f"{PY} train.py", env, start=start, threads=threads)

    assert ranks(job_of(100, tree.path)).keys() == {100, 101}


def test_the_trials_of_a_sweep_are_no_ranks_of_one_job(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py --sweep", {})
    for trial in (1, 2):
        tree.connect(900 + trial, 910 + trial, 40000 + trial)
        command = f"{PY} train.py --trial {trial}"
        own = [900 + trial, 910 + trial]
        tree.add(100 + trial, 100, command, {}, threads=["gloo_tcp_loop"], sockets=own)

    assert 102 not in ranks(job_of(101, tree.path))


def test_a_launcher_of_the_users_own_is_no_rank_though_it_has_a_number(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} launch.py", {"RANK": 0, "WORLD_SIZE": 2, "LOCAL_RANK": 0})
    for rank in (0, 1):
        tree.add(110 + rank, 100, f"{PY} train.py", rank_env(rank))
    tree.add(120, 100, f"{PY} helper.py", {"RANK": 0, "WORLD_SIZE": 2, "LOCAL_RANK": 0})

    for pid in (100, 110, 111):
        assert ranks(job_of(pid, tree.path)).keys() == {110, 111}


def test_jobs_are_found_and_tools_are_not(tree: ProcTree) -> None:
    torchrun(tree)
    torch = "7f00 r-xp /env/torch/lib/libtorch_cpu.so"
    tree.add(200, 50, f"{PY} trainer.py", {}, maps=torch)
    tree.add(201, 200, f"{PY} trainer.py", {}, maps=torch, name="pt_data_worker")
    tree.add(210, 50, f"{PY} serve.py", {}, maps="libc.so")
    tree.add(211, 50, f"{PY} -m pytest tests", {}, maps=torch)
    tree.add(212, 50, f"{PY} /env/bin/jupyter-lab", {}, maps=torch)
    tree.add(213, 50, f"{PY} -m pip install torch", {}, maps=torch)
    tree.add(214, 50, f"{PY} -m trainprobe attach", {}, maps=torch)
    tree.add(220, 50, f"{PY} theirs.py", {}, maps=torch, uid=2000)
    tree.add(230, 211, f"{PY} in_test.py", rank_env(0, 1, MASTER_PORT=1), maps=torch)

    assert [job.pid for job in find_jobs(tree.path, uid=1000)] == [230, 200, 100]
    assert [job.pid for job in find_jobs(tree.path, uid=0)] == [230, 220, 200, 100]


def test_the_ranks_below_a_program_with_torch_are_a_job_of_their_own(tree: ProcTree) -> None:
    torch = "7f00 r-xp /env/torch/lib/libtorch_cpu.so"
    tree.add(200, 50, f"{PY} sweep.py", {}, maps=torch)
    tree.add(210, 200, f"{PY} train.py", {}, maps=torch)
    address = {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501}
    for place in (0, 1):
        tree.add(220 + place, 210, spawn(9 + 2 * place), address, maps=torch)

    (job,) = find_jobs(tree.path, uid=1000)

    assert (job.launcher.kind, job.launcher.pid) == ("spawn", 210)
    assert ranks(job).keys() == {220, 221}


def test_processes_that_vanish_or_are_nonsense_do_not_raise(tree: ProcTree) -> None:
    torchrun(tree)
    for name in ("environ", "status", "cmdline", "cgroup"):
        (tree.root / "110" / name).unlink()
    (tree.root / "111" / "environ").write_bytes(
        b"\xff\xfe=\0RANK\0=3\0WORLD_SIZE=99999999999999999999\0RANK=-1\0"
    )
    (tree.root / "120" / "stat").write_text("120 (x) S what\n")
    (tree.root / "121" / "stat").write_text("")

    job = job_of(111, tree.path)

    assert job.launcher.pid == 100
    assert json.dumps(job.as_data())


def test_a_task_of_slurm_that_spawns_its_ranks(tree: ProcTree) -> None:
    slurm = {"SLURM_PROCID": 0, "SLURM_NTASKS": 1, "SLURM_STEP_ID": 0}
    tree.add(100, 1, "slurmstepd: [12.0]", {}, uid=0)
    tree.add(101, 100, f"{PY} train.py", slurm)
    for place in (0, 1):
        tree.add(
            110 + place,
            101,
            spawn(9 + 2 * place),
            {**slurm, "MASTER_PORT": 29500, "MASTER_ADDR": "localhost"},
        )

    job = job_of(111, tree.path)

    assert (job.launcher.kind, job.launcher.pid, ranks(job)) == (
        "spawn",
        101,
        {110: (0, "start-order"), 111: (1, "start-order")},
    )


def test_the_start_of_spawned_ranks_proves_no_number_where_one_may_have_gone(
    tree: ProcTree,
) -> None:
    tree.add(100, 50, f"{PY} train.py", {})
    for place, handle in ((0, 9), (1, 14)):
        tree.add(
            110 + place, 100, spawn(handle), {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501}
        )

    job = job_of(100, tree.path)
    told = with_hints(job, {110: RankHint(0), 111: RankHint(2)})

    assert (ranks(job), job.world_size, job.absent) == (
        {110: (None, ""), 111: (None, "")},
        None,
        (),
    )
    assert (ranks(told), told.world_size, told.absent) == (
        {110: (0, "frame-locals"), 111: (2, "frame-locals")},
        3,
        (1,),
    )


def test_a_spawned_rank_that_ended_unnoticed_keeps_its_place(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", {})
    address = {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501}
    tree.add(110, 100, spawn(6), address)
    tree.add(111, 100, [], {}, name="python", state="Z")
    tree.add(112, 100, spawn(11), address)

    assert ranks(job_of(100, tree.path)) == {
        110: (0, "start-order"),
        111: (1, "start-order"),
        112: (2, "start-order"),
    }


def test_a_local_called_rank_numbers_no_lone_process_and_no_loader_worker(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} finetune.py", {})
    tree.add(101, 100, f"{PY} finetune.py", {}, name="pt_data_worker")
    job = job_of(100, tree.path)

    told = with_hints(job, {100: RankHint(8), 101: RankHint(8)})

    assert (ranks(told), others(told), told.world_size) == (
        {100: (0, "only-process")},
        {101: ("loader-worker", 0)},
        1,
    )
    elsewhere = with_hints(job, {100: RankHint(3, 0, 8)})
    assert (ranks(elsewhere), elsewhere.world_size, len(elsewhere.absent)) == (
        {100: (3, "frame-locals")},
        8,
        7,
    )


def test_a_shell_below_a_python_program_is_not_that_program(tree: ProcTree) -> None:
    tree.add(90, 50, f"{PY} server.py", {})
    tree.add(91, 90, "bash -i", {})
    tree.add(100, 91, f"{PY} train.py", {})

    with pytest.raises(UsageError, match="no training job"):
        job_of(91, tree.path)
    assert job_of(100, tree.path).pid == 100


def test_a_launcher_whose_ranks_never_came(tree: ProcTree) -> None:
    tree.add(
        100,
        50,
        f"{PY} /env/bin/torchrun --nnodes 2 --node-rank 0 --nproc-per-node 2 sub/train.py",
        {},
    )

    job = job_of(100, tree.path)

    assert (job.ranks, job.world_size, job.absent, job.elsewhere, job.script) == (
        (),
        4,
        (0, 1, 2, 3),
        True,
        "/job/sub/train.py",
    )
    assert job.as_data()["others"][0]["role"] == "launcher"


def test_ranks_whose_launcher_was_killed(tree: ProcTree) -> None:
    for rank in (0, 1):
        tree.add(110 + rank, 1, f"{PY} -u train.py", elastic_env(rank), session=110 + rank)
    tree.add(
        120, 1, f"{PY} -u train.py", elastic_env(0), name="pt_data_worker", group=110, session=110
    )

    job = job_of(111, tree.path)

    assert (job.launcher.kind, job.launcher.pid, job.attempt) == ("bare", None, 0)
    assert 110 in ranks(job)
    assert 120 not in ranks(job)


def test_a_thread_stands_for_its_process(tree: ProcTree) -> None:
    torchrun(tree)
    folder = tree.root / "9000"
    folder.mkdir()
    (folder / "status").write_text("Name:\tpt_autograd_0\nTgid:\t111\nPid:\t9000\n")

    assert job_of(9000, tree.path).pid == 100


def test_the_rank_that_keeps_the_store_is_number_0(tree: ProcTree) -> None:
    tree.add(90, 1, "/env/ray/raylet --port 1", {})
    for place in (0, 1):
        tree.add(
            100 + place,
            90,
            ["ray::RayTrainWorker.run()"],
            {},
            exe="/env/bin/python3.11",
            threads=["pt_tcpstore_uv"] * place,
        )

    assert ranks(job_of(100, tree.path)) == {101: (0, "sockets"), 100: (1, "start-order")}


def test_spawned_ranks_that_were_not_started_in_order_have_no_number_by_it(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", {})
    for place in (0, 1, 2):
        env = {"MASTER_ADDR": "localhost", "MASTER_PORT": 29501}
        tree.add(
            110 + place, 100, spawn(9 + 2 * place), env, threads=["pt_tcpstore_uv"] * (place == 2)
        )

    assert ranks(job_of(100, tree.path)) == {112: (0, "sockets"), 110: (None, ""), 111: (None, "")}


def test_a_world_beyond_all_measure_is_none(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", rank_env(0, 999_999_999))

    job = job_of(100, tree.path)

    assert (job.world_size, job.absent) == (None, ())


@pytest.mark.parametrize("seed", range(25))
def test_whatever_stands_in_proc_never_raises(tree: ProcTree, seed: int) -> None:
    torchrun(tree)
    tree.add(200, 50, f"{PY} train.py", {"MASTER_PORT": 1})
    for place in (0, 1):
        tree.add(210 + place, 200, spawn(9 + 2 * place), {"MASTER_PORT": 1}, sockets=[1 + place])
    tree.connect(1, 2, 40000)
    chance = random.Random(seed)
    files = sorted(
        path for path in tree.root.rglob("*") if path.is_file() and not path.is_symlink()
    )
    for path in chance.sample(files, len(files) // 3):
        content = bytearray(path.read_bytes() or b"x")
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(content))
            content[at : at + chance.randrange(4)] = chance.choice(
                [b"", b"\0", b" ", b"99999999999999999999", "²".encode(), b"\xff", b"-1", b"="]
            )
            content = content or bytearray(b"x")
        path.write_bytes(content)

    for job in find_jobs(tree.path, uid=0):
        assert json.dumps(job.as_data())
    for pid in (100, 110, 121, 200, 210):
        with contextlib.suppress(UsageError):
            job_of(pid, tree.path)


def test_the_worker_of_a_rank_that_is_gone_is_not_that_rank(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} train.py", rank_env(0))
    tree.add(120, 1, f"{PY} train.py", rank_env(1), name="pt_data_worker", group=100)
    tree.add(121, 1, spawn(9), rank_env(1), group=100)

    job = job_of(100, tree.path)

    assert (ranks(job), job.absent, [one.pid for one in job.leftovers]) == (
        {100: (0, "environment")},
        (1,),
        [120],
    )


@pytest.mark.parametrize(
    ("typed", "cwd", "again"),
    [
        pytest.param("train.py", "/job", "/job/train.py", id="relative"),
        pytest.param(
            "src/train.py",
            "/job/outputs/today",
            "/job/src/train.py",
            id="relative, and the folder has changed since",
        ),
        pytest.param("-m app", "/job", "-m app.__main__", id="module"),
    ],
)
def test_a_script_that_starts_itself_again_is_rank_0_however_its_path_is_spelled(
    tree: ProcTree, typed: str, cwd: str, again: str
) -> None:
    tree.add(200, 50, f"{PY} {typed}", {}, cwd=cwd)
    tree.add(
        201,
        200,
        f"{PY} {again}",
        {
            "LOCAL_RANK": 1,
            "NODE_RANK": 0,
            "WORLD_SIZE": 2,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": 29500,
        },
        cwd=cwd,
    )

    for pid in (200, 201):
        found = job_of(pid, tree.path)
        assert (ranks(found)[200][0], ranks(found)[201][0], found.absent) == (0, 1, ())


def test_an_init_stands_for_none_of_the_programs_below_it_and_a_wrapper_for_its_one(
    tree: ProcTree,
) -> None:
    tree.add(60, 1, "supervise --all", {})
    for pid in (61, 62):
        tree.add(pid, 60, f"{PY} train{pid}.py", {}, maps="/env/libtorch_cpu.so")
    with pytest.raises(UsageError, match=r"below it run 2\."):
        job_of(60, tree.path)

    tree.add(70, 50, "timeout 60 python train.py", {})
    tree.add(71, 70, f"{PY} train.py", {})
    tree.add(72, 71, f"{PY} train.py", {}, name="pt_data_worker")
    assert [one.pid for one in job_of(70, tree.path).ranks] == [71]


def test_a_single_process_is_asked_whether_it_has_torch(tree: ProcTree) -> None:
    tree.add(80, 50, f"{PY} -m http.server", {}, maps="/lib/libc.so.6")
    tree.add(81, 50, f"{PY} train.py", {}, maps="/env/libtorch_cpu.so")
    tree.add(82, 50, f"{PY} start.py", {}, maps="/lib/libc.so.6")
    tree.add(83, 82, f"{PY} child.py", {}, maps="/env/libtorch_cpu.so")
    tree.add(84, 50, f"{PY} hidden.py", {})
    torchrun(tree)

    assert [job_of(pid, tree.path).torch for pid in (80, 81, 82, 84, 110)] == [
        False,
        True,
        True,
        None,
        None,
    ]


def step(rank: int, node: str, number: int = 0, **more: object) -> dict[str, object]:
    names = {
        "SLURM_PROCID": rank,
        "SLURM_NTASKS": 2,
        "SLURM_LOCALID": 0,
        "SLURM_NODEID": rank,
        "SLURM_NNODES": 2,
    }
    return {
        "SLURM_JOB_ID": 7,
        "SLURM_STEP_ID": number,
        "SLURMD_NODENAME": node,
        "MASTER_ADDR": "node1",
        "MASTER_PORT": 29500,
        **names,
        **more,
    }


def test_nodes_that_share_a_machine_have_their_own_tasks_only(
    tree: ProcTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank, node in enumerate(("node1", "node2")):
        tree.add(300 + 10 * rank, 1, f"slurmstepd: [7.0] {node}", {})
        tree.add(301 + 10 * rank, 300 + 10 * rank, f"{PY} train.py", step(rank, node))
        tree.add(
            302 + 10 * rank, 301 + 10 * rank, f"{PY} train.py", None, name="pt_data_worker"
        )  # its environment cannot be read

    for rank, node in enumerate(("node1", "node2")):
        monkeypatch.setenv("SLURMD_NODENAME", node)
        (found,) = find_jobs(tree.path, 0)
        assert ranks(found) == {301 + 10 * rank: (rank, "scheduler")}
        assert set(others(found)) >= {302 + 10 * rank}
        assert ranks(job_of(301, tree.path)) == {301: (0, "scheduler")}, (
            "whoever names a process means that process"
        )

    monkeypatch.delenv("SLURMD_NODENAME")
    assert len(find_jobs(tree.path, 0)) == 2


def forked(tree: ProcTree, count: int) -> None:
    tree.add(1000, 50, f"{PY} prepare.py", {})
    for pid in range(1001, 1001 + count):
        tree.add(pid, 1000, f"{PY} prepare.py", {}, threads=())


def of_a_shell(tree: ProcTree, count: int) -> None:
    for pid in range(1000, 1000 + count):
        tree.add(pid, 50, f"{PY} prepare.py", {})


def orphaned(tree: ProcTree, count: int) -> None:
    for pid in range(1000, 1000 + count):
        tree.add(pid, 1, spawn(5 + pid), {}, group=900)


def workers_of_one_rank(tree: ProcTree, count: int) -> None:
    tree.add(1000, 50, f"{PY} train.py", rank_env(0), maps="libtorch")
    for pid in range(1001, 1001 + count):
        tree.add(pid, 1000, f"{PY} train.py", rank_env(0))


def jobs_of_one_rank(tree: ProcTree, count: int) -> None:
    for pid in range(1000, 1000 + count):
        tree.add(pid, 50, f"{PY} train.py", {**rank_env(0, 1), "MASTER_PORT": pid})


def copies_of_one_rank(tree: ProcTree, count: int) -> None:
    for pid in range(1000, 1000 + count):
        tree.add(pid, 50, f"{PY} train.py", rank_env(0))


def of_a_batch_script(tree: ProcTree, count: int) -> None:
    tree.add(900, 1, "slurmstepd: [7.batch]", {})
    tree.add(901, 900, "/bin/bash job.sh", {})
    for pid in range(1000, 1000 + count):
        tree.add(pid, 901, f"{PY} prepare.py", {})


def below_torchrun(tree: ProcTree, count: int) -> None:
    tree.add(1000, 50, f"{PY} /env/bin/torchrun --nproc-per-node {count} train.py", {})
    for rank in range(count):
        tree.add(1001 + rank, 1000, f"{PY} train.py", elastic_env(rank, world=count))


def operations(work: Callable[[], object]) -> int:
    """How many byte codes and calls of C it takes: no clock, so that a busy machine changes
    nothing.
    """
    count = 0

    def traced(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


FAMILIES = [
    forked,
    of_a_shell,
    orphaned,
    workers_of_one_rank,
    jobs_of_one_rank,
    copies_of_one_rank,
    of_a_batch_script,
    below_torchrun,
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_twice_as_many_siblings_cost_twice_as_much(
    family: Callable[[ProcTree, int], None], tmp_path: Path
) -> None:
    costs = []
    for count in (16, 32, 64):
        tree = ProcTree(tmp_path / str(count))
        tree.add(50, 1, "-bash", {}, start=2)
        family(tree, count)
        costs.append(operations(lambda: find_jobs(tree.path, uid=0)))  # noqa: B023 - it is called at once
    first, second, third = costs
    assert third - second < 2.3 * (second - first), costs


def test_each_file_of_a_process_is_read_once(
    tree: ProcTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked(tree, 20)
    reads: Counter[str] = Counter()
    for name in ("_text", "_link", "read_file"):
        plain = getattr(process_table, name)
        monkeypatch.setattr(
            process_table,
            name,
            lambda path, *more, plain=plain: (reads.update([path]), plain(path, *more))[1],
        )
    find_jobs(tree.path, uid=0)
    assert reads
    assert max(reads.values()) == 1, reads.most_common(3)


def test_a_search_that_takes_too_long_ends_with_what_to_do(tree: ProcTree) -> None:
    torchrun(tree)
    with pytest.raises(UsageError, match="were not found in time") as refused:
        find_jobs(tree.path, uid=0, deadline_s=0.0)
    assert "trainprobe attach PID" in refused.value.do


def test_a_server_that_the_script_started_before_it_became_torchrun_is_no_rank(
    tree: ProcTree,
) -> None:
    torchrun(tree)
    tree.add(105, 100, f"{PY} artifact_store.py 43635", {"HF_HUB_OFFLINE": 1})

    assert set(ranks(job_of(100, tree.path))) == {110, 111}


def test_a_rank_that_the_shell_became_is_one_also_beside_a_dead_one(tree: ProcTree) -> None:
    tree.add(100, 50, f"{PY} local_sgd.py", rank_env(0, 3))
    tree.add(111, 100, [], {}, name="python", state="Z")
    tree.add(112, 100, f"{PY} local_sgd.py", rank_env(2, 3))

    job = job_of(100, tree.path)
    assert {pid: number for pid, (number, _) in ranks(job).items()} == {100: 0, 111: 1, 112: 2}
    assert job.world_size == 3
