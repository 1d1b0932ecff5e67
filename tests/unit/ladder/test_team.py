"""Who is who among the processes below a launcher."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainprobe.ladder.launch import LAUNCHER, Launch
from trainprobe.ladder.team import team_of
from trainprobe.model.evidence import Ended
from trainprobe.system.child import Child, ChildSpec, Descendant

GONE = Ended("exited", code=0)


@dataclass
class FakeKeeper:
    """As much of the keeper as the team reads."""

    children: dict[str, Child] = field(default_factory=dict)
    descendants: dict[int, Descendant] = field(default_factory=dict)


def team(
    argv: str, *below: Descendant, nproc: int = 2, witnessed: dict[int, int | None] | None = None
) -> dict[int, tuple[str, int | None]]:
    spec = ChildSpec(LAUNCHER, tuple(argv.split()), {}, "/", "out", "out")
    keeper = FakeKeeper(
        {LAUNCHER: Child(spec, pid=10, started_ticks=1, ended=GONE)},
        {each.pid: each for each in below},
    )
    launch = Launch("user_script@2", nproc, "/", (spec,), command=True)
    return {
        mate.member.pid: (mate.member.role, mate.member.rank)
        for mate in team_of(launch, keeper, witnessed or {})  # type: ignore[arg-type]
    }


def below(pid: int, ppid: int, cmdline: str, rank: int | None = None) -> Descendant:
    return Descendant(pid, ppid, pid, cmdline, rank, GONE)


def test_torchrun_with_loader_workers() -> None:
    found = team(
        "python torchrun train.py",
        below(20, 10, "python train.py", 0),
        below(21, 10, "python train.py", 1),
        below(30, 20, "python train.py", 0),
        below(31, 21, "python -c from multiprocessing.spawn import spawn_main", 1),
        below(32, 21, "python -c from multiprocessing.resource_tracker import main", 1),
        below(33, 20, "wandb-core", 0),
    )

    assert found == {
        10: ("launcher", None),
        20: ("rank", 0),
        21: ("rank", 1),
        30: ("loader-worker", 0),
        31: ("loader-worker", 1),
        32: ("child", 1),
        33: ("child", 0),
    }


def test_a_wrapper_gives_way_to_the_process_that_has_a_witness() -> None:
    found = team(
        "srun bash run.sh",
        below(20, 10, "bash run.sh", 0),
        below(21, 20, "python train.py", 0),
        below(22, 10, "bash run.sh", 1),
        below(23, 22, "numactl python train.py", 1),
        below(24, 23, "python train.py", 1),
        witnessed={21: 0, 24: 1},
    )

    assert {pid: rank for pid, (role, rank) in found.items() if role == "rank"} == {21: 0, 24: 1}


def test_a_script_that_spawns_its_ranks_is_numbered_by_their_start() -> None:
    spawned = "python -c from multiprocessing.spawn import spawn_main"
    found = team(
        "python train.py",
        below(21, 10, spawned),
        below(20, 10, spawned),
        below(22, 10, "python -c from multiprocessing.resource_tracker import main"),
    )

    assert {pid: rank for pid, (role, rank) in found.items() if role == "rank"} == {20: 0, 21: 1}


def test_spawned_workers_of_spawned_ranks_are_no_ranks_and_tell_the_number_that_was_set_inside() -> (
    None
):
    spawned = "python -c from multiprocessing.spawn import spawn_main"
    ranks = (
        below(20, 10, spawned),
        below(21, 10, spawned),
        below(22, 10, "python -c from multiprocessing.resource_tracker import main"),
    )
    workers = (below(30, 20, spawned, 1), below(31, 20, spawned, 1), below(32, 21, spawned, 0))

    one_has_some = team("python train.py", *ranks, *workers[:2])
    assert one_has_some == {
        10: ("launcher", None),
        20: ("rank", 1),
        21: ("rank", 0),
        22: ("child", None),
        30: ("loader-worker", 1),
        31: ("loader-worker", 1),
    }
    both = team(
        "python train.py", *ranks, *workers, below(23, 10, spawned)
    )  # and one that is no rank
    assert {pid: rank for pid, (role, rank) in both.items() if role == "rank"} == {20: 1, 21: 0}
    not_yet_set = team("python train.py", *ranks, below(30, 20, spawned), below(31, 21, spawned))
    assert {pid: rank for pid, (role, rank) in not_yet_set.items() if role == "rank"} == {
        20: 0,
        21: 1,
    }


def test_a_command_that_launches_nobody_is_the_one_rank() -> None:
    assert team("python train.py", nproc=1) == {10: ("rank", 0)}
    assert team("bash run.sh", below(20, 10, "python train.py"), nproc=1)[10] == ("launcher", None)
