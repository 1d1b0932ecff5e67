"""Two jobs that meet at one port."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import ALL_REDUCE, CELL, job, own, rank
from trainprobe.causes.network.port_in_use import CAUSE
from trainprobe.causes.scene import Scene
from trainprobe.facts import Connection
from trainprobe.model.facts import Fact


def scene_of(*peers: tuple[int, str], absent: tuple[int, ...] = ()) -> Scene:
    here = replace(job(2, absent=absent), environment={"0": {"MASTER_PORT": "29500"}})
    connected: list[Fact] = [
        Connection(
            ("E9",),
            CELL,
            pid=100,
            kind="tcp",
            state="ESTAB",
            local="127.0.0.1:29500",
            remote=f"127.0.0.1:{40000 + pid}",
            peer_pid=pid,
            peer=command,
        )
        for pid, command in peers
    ]
    ranks = [rank(one, ALL_REDUCE, ALL_REDUCE) for one in range(2) if one not in absent]
    return live_rows.scene_of(here, *ranks, connected)


def total(scene: Scene) -> int:
    return sum(one.points for one in CAUSE.weigh(scene))


def test_another_jobs_processes_at_the_store_are_named() -> None:
    scene = scene_of(
        (101, "python train.py"), (501, "python -u other.py"), (502, "python -u other.py")
    )

    assert total(scene) == 19
    assert "Pids 501 and 502 of another job" in CAUSE.summary(scene)
    assert "port 29500" in CAUSE.summary(scene)
    assert "kill 501 502" in str(CAUSE.fixes_for(scene))


def test_who_is_no_python_or_may_be_a_rank_of_the_job_is_no_stranger() -> None:
    assert total(scene_of((101, "python train.py"), (601, "ss -tnp"))) == 0
    assert total(scene_of((501, "python train.py"), absent=(1,))) == 0


def test_a_job_that_does_not_hang_bears_company() -> None:
    scene = scene_of((501, "python watch.py"))
    ranks = [rank(0, own("step", 7), own("step", 9)), rank(1)]
    moving = live_rows.facts_of(job(2), *ranks)
    assert total(scene) > 0
    assert total(Scene(moving, replace(scene.group, mode="slow"))) == 0
