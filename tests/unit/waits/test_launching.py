"""Launchers without a rank that wait at the rendezvous: since when, and what they were told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import CELL, facts_of, job
from trainprobe.facts import MainThread, ProcessState
from trainprobe.facts.jobs import Process
from trainprobe.model.facts import Fact
from trainprobe.waits.live import live_views
from trainprobe.waits.meeting import told_apart


def agent(pid: int, age_s: float) -> list[Fact]:
    at = MainThread(
        (f"E{pid}",), CELL, None, pid=pid, role="launcher", leaf="store-wait", op="rendezvous"
    )
    process = ProcessState(
        (f"E{pid}",), CELL, None, pid=pid, role="launcher", looked_s=1.0, age_s=age_s
    )
    return [replace(at, looks=2), process]


@pytest.mark.parametrize(("second_s", "verdict"), [(90.0, "hung"), (31.0, "healthy")])
def test_agents_wait_for_each_other_since_the_last_one_came(second_s: float, verdict: str) -> None:
    of_two = replace(job(4, absent=(0, 1, 2, 3), elsewhere=True), nnodes=2)

    (found,) = live_views(facts_of([of_two], agent(9, 95.0), agent(10, second_s)))

    assert found.verdict == verdict
    assert "pids 9, 10" in found.says or verdict == "healthy"


@pytest.mark.parametrize(
    ("first", "second", "differing"),
    [
        ("--rdzv-id 7 --rdzv_endpoint=a:1", "--rdzv_id=8 --rdzv-endpoint a:1", {"rdzv-id"}),
        ("--master-addr a --node-rank 0", "--master-addr a --node-rank 1", set()),
        ("--master_port 1", "", {"master-port"}),
    ],
)
def test_agents_differ_in_what_all_must_be_told_alike(
    first: str, second: str, differing: set[str]
) -> None:
    agents = tuple(
        Process(pid=pid, role="launcher", cmdline=f"torchrun --nnodes 2 {told} train.py")
        for pid, told in ((9, first), (10, second))
    )

    assert set(told_apart(replace(job(4), others=agents), (9, 10))) == differing
