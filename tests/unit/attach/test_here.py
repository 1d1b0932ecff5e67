"""The groups of processes that one node looks at, each in a cell of its own."""

from __future__ import annotations

import pytest

from trainprobe.attach import node_look
from trainprobe.targets.live_job import LaunchedBy, LiveJob, LiveRank

STEPS = {10: "0", 11: "0", 12: "0", 20: "1", 30: "", 40: "0"}


def group(*pids: int, address: str = "") -> LiveJob:
    ranks = tuple(LiveRank(pid, 100, place, "environment") for place, pid in enumerate(pids))
    return LiveJob(
        LaunchedBy("bare"),
        ranks,
        environment={"0": {"MASTER_ADDR": address, "MASTER_PORT": "29500"}} if address else {},
    )


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = (
        group(20, address="node1"),
        group(10, 11, 12),
        group(30, address="no name\n"),
        group(40),
    )
    monkeypatch.setattr(node_look, "find_jobs", lambda **_: jobs)
    monkeypatch.setattr(
        node_look,
        "environ_of",
        lambda pid: {"SLURM_JOB_ID": "7" if pid < 40 else "8", "SLURM_STEP_ID": STEPS[pid]},
    )


def cells(slurm: str) -> dict[str, list[int]]:
    return {
        cell: [one.pid for one in job.ranks] for cell, job in node_look._mine(slurm, 5.0).items()
    }


def test_each_step_of_a_job_is_a_group_of_its_own_under_one_name_on_all_nodes() -> None:
    assert cells("7") == {"job#step0": [10, 11, 12], "job#step1": [20], "job#stepbatch": [30]}
    assert cells("7.1") == {"job#step1": [20]}
    assert cells("9") == {}


def test_without_slurm_the_largest_group_is_the_job_and_the_others_are_looked_at_too() -> None:
    assert cells("") == {
        "job": [10, 11, 12],
        "job#node1:29500": [20],
        "job#pid30": [30],
        "job#pid40": [40],
    }
