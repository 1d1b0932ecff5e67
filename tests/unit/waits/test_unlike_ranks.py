"""In what ranks differ that must not, and what is only said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import ALL_REDUCE, C10D, CELL, MAIN, facts_of, job, process, view
from trainprobe.causes import built
from trainprobe.causes.scene import Scene
from trainprobe.collect.collectors.libraries import RankLibraries
from trainprobe.facts import JobRank, SourceSite
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid
from trainprobe.stacks.frames import Frame
from trainprobe.waits.unlike_ranks import UnlikeRanks, unlike_ranks

HOSTS = ("node1", "node2", "node3")
OWN = RankLibraries(
    ("E9",),
    CELL,
    python="3.11",
    torch_version="2.8.0",
    nccl_version="2.27.3",
    interfaces=("lo", "eth0"),
)
INIT = (MAIN, Frame("init_process_group", C10D, 1899))


def rows(
    *settings: dict[str, str], one: dict[str, object] | None = None, **all_ranks: object
) -> list[Fact]:
    """A job of three ranks on a host each; `one` is how the libraries of rank 1 differ."""
    environment = {str(rank): {"RANK": str(rank), **own} for rank, own in enumerate(settings)}
    found: list[Fact] = [replace(job(3), environment=environment)]
    for rank, host in enumerate(HOSTS):
        pid = HostPid(10 + rank, host, rank + 1)
        own = {**all_ranks, **(one or {} if rank == 1 else {})}
        found += [
            JobRank(("E1",), CELL, rank, pid=pid, host=host),
            replace(OWN, rank=rank, pid=pid, **own),  # type: ignore[arg-type]
        ]
    return found


def unlike(*settings: dict[str, str], **more: object) -> tuple[UnlikeRanks, ...]:
    found = rows(*settings, **more)  # type: ignore[arg-type]
    return unlike_ranks(facts_of(*found), found[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "backend", "name", "fault"),
    [
        ({"torch_version": "2.7.1"}, "gloo", "torch", True),
        ({"nccl_version": "2.21.5"}, "nccl", "NCCL", True),
        ({"nccl_version": "2.21.5"}, "gloo", "NCCL", False),
        ({"backend": "gloo"}, "nccl", "the backend", True),
        ({"python": "3.12"}, "gloo", "Python", False),
    ],
)
def test_versions_that_one_rank_does_not_share(
    one: dict[str, object], backend: str, name: str, fault: bool
) -> None:
    (found,) = unlike(one=one, backend=backend)

    assert (found.name, found.fault, found.ranks, found.hosts) == (name, fault, (1,), ("node2",))


@pytest.mark.parametrize(
    ("name", "values", "backend", "faults"),
    [
        ("TORCH_DISTRIBUTED_DEBUG", ("DETAIL", "DETAIL", ""), "gloo", [True]),
        ("TORCH_DISTRIBUTED_DEBUG", ("INFO", "", ""), "gloo", []),
        ("NCCL_PROTO", ("", "LL", ""), "nccl", [True]),
        ("NCCL_PROTO", ("", "LL", ""), "gloo", [False]),
        ("NCCL_DEBUG_FILE", ("a", "b", "c"), "nccl", []),
        ("NCCL_SOCKET_IFNAME", ("eth0", "eth", "^lo"), "nccl", [False]),
        ("NCCL_SOCKET_IFNAME", ("ib0", "ib0", "ib0"), "nccl", [True]),
        ("NCCL_SOCKET_IFNAME", ("=eth", "eth0", "eth0"), "nccl", [True, False]),
        ("GLOO_SOCKET_IFNAME", ("eth0", "lo", "eth0"), "gloo", [True, False]),
    ],
)
def test_settings_that_must_agree_and_interfaces_that_must_be_there(
    name: str, values: tuple[str, ...], backend: str, faults: list[bool]
) -> None:
    found = unlike(*({name: value} if value else {} for value in values), backend=backend)

    assert [(one.name, one.fault) for one in found] == [(name, fault) for fault in faults]


def told(cause_id: str, found: list[Fact], *stacks: tuple[Frame, ...]) -> tuple[int, str]:
    """The points of a cause for the hung job whose ranks stand there, and its sentence."""
    threads = [
        process(HostPid(10 + rank, HOSTS[rank], rank + 1), stack, stack, rank=rank)
        for rank, stack in enumerate(stacks)
    ]
    group = view(*found, *threads).groups[0]
    cause = next(cause for cause in built() if cause.id == cause_id)
    scene = Scene(facts_of(*found, *threads), group)
    points = sum(row.points for row in cause.weigh(scene))
    assert points == 0 or all(fix.steps for fix in cause.fixes_for(scene))
    return points, cause.summary(scene) if points else ""


def test_ranks_that_all_wait_for_each_other_with_different_versions_are_told_so() -> None:
    older = rows(one={"torch_version": "2.7.1"})

    points, says = told("environment-differs", older, *3 * [ALL_REDUCE])
    assert (points, says.startswith("Rank 1 on node2 has torch 2.7.1, the others 2.8.0")) == (
        13,
        True,
    )
    own = (MAIN, Frame("acquire", "/job/train.py", 5))
    assert told("environment-differs", older, ALL_REDUCE, own, ALL_REDUCE)[0] == 0
    assert told(
        "nccl-version-mismatch",
        rows(one={"nccl_version": "2.21.5"}, backend="nccl"),
        *3 * [ALL_REDUCE],
    ) == (13, "Rank 1 on node2 has NCCL 2.21.5, the others 2.27.3")


def test_a_line_that_reads_otherwise_on_one_host_is_another_state_of_the_program() -> None:
    texts = ("dist.all_gather(out, x)", "dist.all_reduce(x)", "dist.all_gather(out, x)")
    found = [
        *rows(),
        *(
            SourceSite((f"E{rank}",), CELL, rank, file="/app/metrics.py", line=16, text=text)
            for rank, text in enumerate(texts)
        ),
    ]

    points, says = told("environment-differs", found, *3 * [ALL_REDUCE])

    assert points == 26
    assert says.startswith(
        "Rank 1 on node2 has metrics.py:16 `dist.all_reduce(x)`, the others"
        " `dist.all_gather(out, x)`"
    )


def copies(*digests: str) -> list[Fact]:
    """Where each rank stands at a line of its own, in such a copy of the program."""
    return [
        *rows(),
        *(
            SourceSite(
                (f"E{rank}",), CELL, rank, "/app/train.py", 30 + rank, text="x()", digest=digest
            )
            for rank, digest in enumerate(digests)
        ),
    ]


def test_ranks_that_part_by_their_copy_of_the_program_run_two_programs() -> None:
    barrier = (MAIN, Frame("barrier", C10D, 4159))
    found = copies("aaaaaaaaaaaa", "bbbbbbbbbbbb", "aaaaaaaaaaaa")

    parted = (ALL_REDUCE, barrier, ALL_REDUCE)
    points, says = told("environment-differs", found, *parted)
    assert points == 26
    assert says.startswith(
        "Rank 1 on node2 has train.py of sha256 bbbbbbbb, the others of sha256 aaaaaaaa"
    )
    alike = copies("aaaaaaaaaaaa", "aaaaaaaaaaaa", "aaaaaaaaaaaa")
    for cause_id in ("rank-conditional-collective", "collective-order-mismatch"):
        assert told(cause_id, found, *parted)[0] == told(cause_id, alike, *parted)[0] - 13

    # where others part, or nobody does, the copies may differ in a comment
    assert told("environment-differs", found, ALL_REDUCE, ALL_REDUCE, barrier)[0] == 6
    assert told("environment-differs", found, *3 * [ALL_REDUCE])[0] == 6
    assert told("environment-differs", alike, *parted)[0] == 0


def test_a_debug_level_of_one_rank_hinders_while_its_group_is_made() -> None:
    detail = rows({}, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, {})

    assert told("environment-differs", detail, ALL_REDUCE, INIT, ALL_REDUCE)[0] == 26
    assert told("environment-differs", detail, *3 * [ALL_REDUCE])[0] == 0


def test_an_interface_that_a_host_does_not_have_is_told_with_the_host() -> None:
    settings = [{"NCCL_SOCKET_IFNAME": name} for name in ("eth0", "ib0", "eth0")]
    found = rows(*settings, backend="nccl")

    assert told("wrong-network-interface", found, *3 * [ALL_REDUCE]) == (
        13,
        "Rank 1 on node2 has NCCL_SOCKET_IFNAME=ib0, which is not there",
    )


def test_a_difference_that_may_be_right_is_only_said() -> None:
    newer = rows(one={"python": "3.12"})
    threads = [
        process(HostPid(10 + rank, HOSTS[rank], rank + 1), ALL_REDUCE, ALL_REDUCE, rank=rank)
        for rank in range(3)
    ]

    found = view(*newer, *threads)
    assert found.remarks == ("Rank 1 on node2 has Python 3.12, the others 3.11",)
    assert told("environment-differs", newer, *3 * [ALL_REDUCE])[0] == 0
