"""The job record becomes facts, also where its data is hostile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.targets.proc_tree import ProcTree
from trainprobe.facts import Job, JobRank, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB
from trainprobe.model.unnumbered import number_of
from trainprobe.targets.jobs import job_of


def record(data: dict[str, Any]) -> Evidence:
    return Evidence(id="E1", kind="job", subject=JOB, source="/proc", cell="job", data=data)


def test_what_discovery_writes_is_read_whole(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path / "proc")
    tree.add(100, 1, "python /env/bin/torchrun --nproc-per-node 3 train.py", {})
    for rank in (0, 2):
        env = {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": 3,
            "TORCHELASTIC_RESTART_COUNT": 1,
            "TORCHELASTIC_RUN_ID": "x",
        }
        tree.add(110 + rank, 100, "python train.py", env)
    tree.add(120, 112, "python train.py", {}, name="pt_data_worker")
    tree.add(130, 100, "python train.py", {"RANK": 1, "TORCHELASTIC_RESTART_COUNT": 0})

    facts = read([record(job_of(100, tree.path).as_data())])

    assert not facts.unreadable
    job = facts.one(Job, cell="job")
    assert job is not None
    assert (job.launcher, job.launcher_pid, job.world_size, job.absent, job.attempt) == (
        "torchrun",
        100,
        3,
        (1,),
        1,
    )
    assert [(one.pid, one.role, one.rank) for one in job.others] == [
        (100, "launcher", None),
        (120, "loader-worker", 2),
    ]
    assert [(one.pid, one.attempt) for one in job.earlier_attempts] == [(130, 0)]
    assert job.environment["2"]["WORLD_SIZE"] == "3"
    found = [
        (one.rank, one.pid, one.rank_source, one.local_rank, one.attempt, one.started_ticks)
        for one in facts.of(JobRank)
    ]
    assert found == [(0, 110, "environment", 0, 1, 1110), (2, 112, "environment", 2, 1, 1112)]


def test_nonsense_numbers_count_as_unknown() -> None:
    rows = [
        {"pid": 5, "rank": -3},
        {"pid": 5, "rank": 1},
        {"pid": 6, "rank": 2**40},
        {"rank": 1},
        "x",
        {"pid": "y"},
    ]
    facts = read(
        [
            record(
                {"launcher": {}, "world_size": 2**60, "absent": [-1, 2**50, 3, "z"], "ranks": rows}
            )
        ]
    )

    job = facts.one(Job)
    assert job is not None
    assert (job.world_size, job.absent) == (None, (3,))
    assert [(one.pid, one.rank) for one in facts.of(JobRank)] == [
        (5, number_of(5)),
        (6, number_of(6)),
    ]  # no rank has such a number


@pytest.mark.parametrize(
    "data",
    [
        {"launcher": "torchrun"},
        {"ranks": {"0": 1}},
        {"others": [1, 2]},
        {"world_size": "two"},
        {"environment": []},
        {"began": float("nan")},
        {"elsewhere": 1},
    ],
)
def test_data_of_another_shape_is_unreadable_and_never_raises(data: dict[str, Any]) -> None:
    facts = read([record(data)])

    assert facts.unreadable == ("E1",)
    assert facts.of(Job) == ()
