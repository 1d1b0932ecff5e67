"""The user's command with torch: both forms, a stall inside gloo, a crash, loader workers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import pytest

from tests.ladder.conftest import Climb
from trainprobe.config import Settings

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
TORCHRUN = (
    shutil.which("torchrun", path=f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}")
    or "torchrun",
    "--nproc-per-node",
    "{ranks}",
    "train.py",
)
TIMES = Settings(first_output_s=60.0, stall_s=4.0, run_s=120.0)
LOOP = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    if world == 2 and step == 5 and rank == 1:
        {fault}
    model(torch.randn(2, 4)).sum().backward()
    dist.all_reduce(torch.ones(1))
    optimizer.step()
    time.sleep(0.05)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "command", [(), pytest.param(TORCHRUN, marks=pytest.mark.soak)], ids=["launch", "torchrun"]
)
def test_steps_are_seen_without_a_line_of_output(script: Climb, command: tuple[str, ...]) -> None:
    done = script(
        LOOP.format(fault="pass"),
        form="command" if command else "launch",
        command=command,
        settings=TIMES,
    )

    assert done.outcomes() == {"user_script@1": "passed", "user_script@2": "passed"}
    assert "8 steps" in done.rung("user_script@2")["says"]


@pytest.mark.parametrize(
    "command", [pytest.param((), marks=pytest.mark.soak), TORCHRUN], ids=["launch", "torchrun"]
)
def test_a_rank_that_never_comes_is_seen_beside_the_one_that_waits(
    script: Climb, command: tuple[str, ...]
) -> None:
    done = script(
        LOOP.format(fault="time.sleep(1000)"),
        ranks=(2,),
        form="command" if command else "launch",
        command=command,
        settings=TIMES,
    )
    rung = done.rung("user_script@2")
    looks = [
        one
        for one in done.of("stacks.python", "user_script@2")
        if one.subject.role == "rank" and one.outcome == "ok"
    ]

    assert (rung["outcome"], rung["stopped_because"]) == ("timed_out", "stall")
    assert {one.subject.rank for one in looks} == {0, 1}
    assert any(
        call for one in done.of("collectives", "user_script@2") for call in one.data["calls"]
    )
    assert all(not os.path.exists(f"/proc/{one.subject.pid}") for one in done.of("rank.ended"))


def test_torchruns_ranks_are_found_with_their_own_output_and_exit_status(script: Climb) -> None:
    fault = "print('about to go', flush=True); os.kill(os.getpid(), 9)"
    done = script(
        LOOP.format(fault=fault), ranks=(2,), form="command", command=TORCHRUN, settings=TIMES
    )
    endings = {
        one.subject.rank: one
        for one in done.of("rank.ended", "user_script@2")
        if one.subject.role == "rank"
    }
    outputs = {
        one.subject.rank: one.data["head"]
        for one in done.of("output", "user_script@2")
        if one.data["stream"] == "stdout"
    }

    assert (done.rung("user_script@2")["outcome"], done.rung("user_script@2")["ranks"]) == (
        "crashed",
        [1],
    )
    assert (endings[1].data["how"], endings[1].data["signal"], endings[1].data["by_us"]) == (
        "signalled",
        9,
        False,
    )
    assert "about to go" in outputs[1]


def test_workers_of_a_loader_are_looked_at_and_ended(script: Climb) -> None:
    body = """
    import time
    import torch
    from torch.utils.data import DataLoader
    class Stuck(torch.utils.data.Dataset):
        def __len__(self): return 100
        def __getitem__(self, index):
            time.sleep(1000)
    for batch in DataLoader(Stuck(), num_workers=2):
        print(batch)
    """
    done = script(body, nproc=1, settings=Settings(first_output_s=10.0, stall_s=4.0, run_s=90.0))
    roles = [
        one.subject.role
        for one in done.of("stacks.python", "user_script@1")
        if one.data["look"] == 1
    ]

    assert done.rung("user_script@1")["outcome"] == "timed_out"
    assert sorted(roles) == ["loader-worker", "loader-worker", "rank"]
    assert {one.subject.rank for one in done.of("process", "user_script@1")} == {0}
    assert not any(
        os.path.exists(f"/proc/{one.data['pid']}") for one in done.of("process", "user_script@1")
    )
