"""Where ranks part, and who waits for whom, by dumps: real ones of gloo, and of NCCL those cases
on which PyTorch's own analyzer errs.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.unit.recorder.dumps import (
    CELL,
    entry,
    facts_of,
    in_group,
    nccl,
    parting,
    real,
    send_or_recv,
)
from trainprobe.waits.recorder_waits import circles, edges, ends, recorded_waits

WORLD3 = {"0": [0, 1, 2]}


def steps(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry(1), entry(2), *rows]


# --------------------------- gloo, as it is: PyTorch's analyzer ends in a KeyError on each of these


@pytest.mark.parametrize("kind", ["missing", "missing-json"])
def test_a_rank_that_never_came(kind: str) -> None:
    waits = recorded_waits(facts_of(real(kind)), CELL)
    assert {
        rank: (wait.meeting, wait.awaited, wait.undumped, wait.sure) for rank, wait in waits.items()
    } == {
        0: ("all_reduce #4 of default_pg", (1,), (), True),
        2: ("all_reduce #4 of default_pg", (1,), (), True),
    }
    assert ends(waits) == (1,)
    found = parting(real(kind), 3)
    assert found is not None
    assert (found.kind, found.position, found.camps) == ("missing", 4, ((1,), (0, 2)))


@pytest.mark.parametrize("kind", ["type", "type-json"])
def test_another_operation_is_the_minoritys_not_the_first_ranks(kind: str) -> None:
    found = parting(real(kind), 3)
    assert found is not None
    assert (found.kind, found.position, found.camps) == ("operation", 4, ((1,), (0, 2)))
    assert found.calls[0].startswith("broadcast [4] Float")


def test_a_silent_pairing_is_found_where_it_began() -> None:
    """Rank 0 alone runs a barrier in its checkpoint; it pairs with the others' last barrier, and
    all are stuck one collective later.
    """
    found = parting(real("pairing"), 3)
    assert found is not None
    assert (found.kind, found.position, found.camps) == ("call-site", 4, ((0,), (1, 2)))
    assert found.sites == (("/home/user/train.py", 26), ("/home/user/train.py", 30))


def test_two_groups_in_opposite_order_are_a_circle() -> None:
    facts = facts_of(real("groups"))
    waits = recorded_waits(facts, CELL)
    assert circles(waits) == ((0, 1),)
    assert not waits[0].sure  # gloo does not say who belongs to a group
    assert [
        wait.weight
        for wait in edges(waits)
        if wait.waiter.key == "all_reduce #1 of group 1 (tensor)"
    ] == [0.5]
    found = parting(real("groups"), 3)
    assert found is not None
    assert (found.kind, found.camps) == ("order", ((0,), (1,)))
    assert found.calls[0] == "all_reduce [4] Float in group 1 (tensor) at train.py:60"


def test_who_waits_elsewhere_is_a_victim_and_not_missing() -> None:
    found = parting(real("subgroup"), 3)
    assert found is not None
    assert (found.kind, found.camps[0]) == (
        "missing",
        (2,),
    )  # not rank 1, which waits for rank 2 itself
    assert ends(recorded_waits(facts_of(real("subgroup")), CELL)) == (2,)


def test_nothing_pending_is_no_wait() -> None:
    assert recorded_waits(facts_of(real("done")), CELL) == {}
    assert parting(real("done"), 3) is None


def test_an_absent_dump_is_evidence() -> None:
    dumps = {rank: content for rank, content in real("missing").items() if rank != 1}
    found = parting(dumps, 3)
    assert found is not None
    assert (found.kind, found.camps, found.calls[0]) == (
        "missing",
        ((1,), (0, 2)),
        "nothing that was recorded",
    )
    assert recorded_waits(facts_of(dumps), CELL)[0].undumped == (1,)


def test_who_is_seen_to_be_missing_goes_before_who_left_no_dump() -> None:
    row = steps(entry(3, state="started"))
    dumps = {
        0: nccl(row, {"0": [0, 1, 2, 3]}),
        1: nccl(steps(), {"0": [0, 1, 2, 3]}),
        3: nccl(row, {"0": [0, 1, 2, 3]}),
    }
    found = parting(dumps, 4)
    assert found is not None
    assert (found.kind, found.camps) == ("missing", ((1,), (0, 3)))


# --------------------------------------------------------------------------------------------- NCCL


@pytest.mark.parametrize(
    ("backend", "version"), [("nccl", "2.4"), ("nccl", "2.10"), ("nccl2", "2.10")]
)
def test_a_symmetric_wedge_blames_nobody(backend: str, version: str) -> None:
    """All have joined the same collective, and what some have enqueued behind it tells nothing.
    PyTorch's analyzer prints nothing.
    """
    state = "started" if backend == "nccl" else "scheduled"
    ahead = [*steps(entry(3, state=state)), entry(4, state="scheduled")]
    dumps = {
        rank: nccl(
            ahead if rank else steps(entry(3, state=state)),
            WORLD3,
            backend=backend,
            version=version,
        )
        for rank in range(3)
    }
    assert parting(dumps, 3) is None
    waits = recorded_waits(facts_of(dumps), CELL)
    assert {(wait.meeting, wait.awaited) for wait in waits.values()} == {
        ("all_reduce #3 of default_pg", ())
    }
    assert (ends(waits), circles(waits)) == ((), ())


def test_a_wrapped_ring_accuses_nobody() -> None:
    """Record ids count per process: ranks of two pipeline stages have other counts. PyTorch's
    analyzer aligns by them.
    """
    dumps = {}
    for rank in range(4):
        stage = "1" if rank < 2 else "2"
        members = {"0": range(4), stage: [0, 1] if rank < 2 else [2, 3]}
        own = [
            entry(seq, **in_group(stage, 1), record_id=5 * seq)
            for seq in range(90 + 3 * rank, 200 + 40 * (rank > 1))
        ]
        world = [entry(seq, record_id=7000 - rank * 31 + seq) for seq in range(30 + rank, 60)]
        dumps[rank] = nccl([*own, *world], {name: list(ranks) for name, ranks in members.items()})
    assert parting(dumps, 4) is None
    assert recorded_waits(facts_of(dumps), CELL) == {}


def test_after_a_wrap_the_missing_rank_is_still_found() -> None:
    ring = [entry(seq) for seq in range(500, 520)]
    dumps = {
        0: nccl([*ring[3:], entry(520, state="started")], WORLD3),
        1: nccl(ring, WORLD3),
        2: nccl([*ring[1:], entry(520, state="started")], WORLD3),
    }
    found = parting(dumps, 3)
    assert found is not None
    assert (found.kind, found.position, found.camps) == ("missing", 520, ((1,), (0, 2)))


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        ({"input_sizes": [[5]]}, "shape"),
        ({"input_dtypes": ["Double"]}, "dtype"),
        ({"profiling_name": "nccl:broadcast"}, "operation"),
    ],
)
def test_one_odd_rank_among_three_is_the_one(other: dict[str, Any], kind: str) -> None:
    """The odd one is rank 0: PyTorch's analyzer takes it as the reference and calls the three
    others culprits.
    """
    groups = {"0": [0, 1, 2, 3]}
    dumps = {
        rank: nccl(steps(entry(3, state="started", **(other if rank == 0 else {}))), groups)
        for rank in range(4)
    }
    found = parting(dumps, 4)
    assert found is not None
    assert (found.kind, found.position, found.camps) == (kind, 3, ((0,), (1, 2, 3)))


def test_two_equal_camps_are_both_named() -> None:
    dumps = {
        rank: nccl(
            steps(entry(3, "all_reduce" if rank else "broadcast", state="started")), {"0": [0, 1]}
        )
        for rank in range(2)
    }
    found = parting(dumps, 2)
    assert found is not None
    assert sorted(found.camps) == [(0,), (1,)]


@pytest.mark.parametrize(
    "op", ["all_to_all", "all_to_all_single", "all_gather_v", "gather", "_broadcast_oop"]
)
def test_sizes_may_differ_where_the_operation_allows_it(op: str) -> None:
    def row(rank: int) -> dict[str, Any]:
        return entry(3, op, state="started", input_sizes=[[rank + 1]], output_sizes=[[3 - rank]])

    assert parting({rank: nccl(steps(row(rank)), WORLD3) for rank in range(3)}, 3) is None


@pytest.mark.parametrize("op", ["all_to_all", "all_to_all_single"])
def test_what_all_ranks_put_into_an_exchange_must_come_out_of_it(op: str) -> None:
    dumps = {
        rank: nccl(
            steps(
                entry(3, op, state="started", input_sizes=[[3 + (rank == 1)]], output_sizes=[[3]])
            ),
            WORLD3,
        )
        for rank in range(3)
    }
    found = parting(dumps, 3)
    assert found is not None
    assert (found.kind, found.camps) == ("shape", ((1,), (0, 2)))
    assert parting({rank: dumps[rank] for rank in (1, 2)}, 3) != found, (
        "without rank 0's call nothing is known of the sum"
    )


def test_uneven_lists_may_be_gathered() -> None:
    """torch.distributed.all_gather: "Uneven sized tensors are supported"; the lists as a whole
    must be alike.
    """

    def gathered(out: int) -> Any:
        return {
            rank: nccl(
                steps(
                    entry(
                        3,
                        "all_gather",
                        state="started",
                        input_sizes=[[4 + 4 * (rank == 0)]],
                        output_sizes=[[16 + (rank == 0) * out]],
                    )
                ),
                WORLD3,
            )
            for rank in range(3)
        }

    assert parting(gathered(0), 3) is None
    found = parting(gathered(16), 3)
    assert found is not None
    assert (found.kind, found.camps) == ("shape", ((0,), (1, 2)))


def test_paths_of_containers_may_differ_and_a_wrapper_may_be_called_from_two_places() -> None:
    def moved(row: dict[str, Any], rank: int) -> dict[str, Any]:
        return {
            **row,
            "frames": [
                {**frame, "filename": str(frame["filename"]).replace("/home/user", f"/mnt/{rank}")}
                for frame in row["frames"]
            ],
        }

    same = {
        rank: nccl([moved(row, rank) for row in steps(entry(3, state="started"))], WORLD3)
        for rank in range(3)
    }
    assert parting(same, 3) is None
    wrapper = {"name": "reduce", "filename": "/home/user/comm.py", "line": 5}
    rows = {}
    for rank in range(3):
        parted = entry(3, line=70 if rank == 2 else 60)
        parted["frames"].insert(1, wrapper)
        rows[rank] = nccl(
            steps(parted, *([] if rank == 2 else [entry(4, line=80, state="started")])), WORLD3
        )
    found = parting(rows, 3)
    assert found is not None
    assert (found.kind, found.position, found.camps) == ("call-site", 3, ((2,), (0, 1)))
    assert found.sites == (
        ("/home/user/train.py", 70),
        ("/home/user/train.py", 60),
    )  # the wrapper's own line would tell nothing


def test_two_call_sites_of_one_collective_are_right_when_the_ranks_agree_again() -> None:
    dumps = {
        rank: nccl(
            steps(
                entry(3, "broadcast", line=20 + rank),
                entry(4),
                *([entry(5, state="started")] if rank else []),
            ),
            {"0": [0, 1]},
        )
        for rank in range(2)
    }
    found = parting(dumps, 2)
    assert found is not None
    assert (found.kind, found.camps) == ("missing", ((0,), (1,)))


def test_one_name_for_two_groups_is_two_groups() -> None:
    """split_group gives one name to different sets of ranks."""
    halves = {rank: [0, 1] if rank < 2 else [2, 3] for rank in range(4)}
    dumps = {
        rank: nccl(
            [
                entry(
                    1,
                    "all_gather" if rank < 2 else "all_reduce",
                    state="started",
                    **in_group("9", 1),
                )
            ],
            {"9": halves[rank]},
        )
        for rank in range(4)
    }
    assert parting(dumps, 4) is None


def test_members_are_those_of_the_group_not_of_the_world() -> None:
    dumps = {
        rank: nccl(
            steps(*([entry(1, state="started", **in_group("3", 1))] if rank == 2 else [])),
            {**WORLD3, "3": [1, 2]},
        )
        for rank in range(3)
    }
    assert recorded_waits(facts_of(dumps), CELL)[2].awaited == (1,)
    found = parting(dumps, 3)
    assert found is not None
    assert (found.kind, found.camps) == ("missing", ((1,), (2,)))


def test_a_circle_through_three_groups_with_known_members() -> None:
    groups = {"1": [0, 1], "2": [1, 2], "3": [2, 0]}
    dumps = {
        rank: nccl([entry(1, state="started", **in_group(str(rank + 1), rank + 1))], groups)
        for rank in range(3)
    }
    assert circles(recorded_waits(facts_of(dumps), CELL)) == ((0, 1, 2),)
    found = parting(dumps, 3)
    assert found is not None
    assert (found.kind, len(found.camps)) == ("order", 3)


# ------------------------------------------------------------------------- meshes of two dimensions


def mesh(rows: dict[int, list[dict[str, Any]]]) -> dict[int, bytes]:
    """Ranks 0-3 as two by two: groups 1 {0,2} and 2 {1,3} along `data`, 3 {0,1} and 4 {2,3}
    along `tensor`.
    """
    members = {"0": [0, 1, 2, 3], "1": [0, 2], "2": [1, 3], "3": [0, 1], "4": [2, 3]}
    made = {}
    for rank, entries in rows.items():
        told = pickle.loads(
            nccl(entries, {name: ranks for name, ranks in members.items() if rank in ranks})
        )
        for name, group in told["pg_config"].items():
            group["desc"] = {"0": "default_pg", "1": "mesh_data", "2": "mesh_data"}.get(
                name, "mesh_tensor"
            )
        made[rank] = pickle.dumps(told, protocol=2)
    return made


def along(dimension: str, rank: int, seq: int, state: str = "completed") -> dict[str, Any]:
    name = {"data": 1 + rank % 2, "tensor": 3 + rank // 2}[dimension]
    return entry(seq, state=state, process_group=(str(name), f"mesh_{dimension}"), pg_id=name)


def test_ranks_of_one_dimension_of_a_mesh_are_one_camp() -> None:
    """Ranks 0 and 3 reduce over `data` first, 1 and 2 over `tensor`: four groups, and two
    orders.
    """
    dumps = mesh(
        {
            rank: [
                along("tensor", rank, 1),
                along("data" if rank in (0, 3) else "tensor", rank, 2, "started"),
            ]
            for rank in range(4)
        }
    )
    found = parting(dumps, 4)
    assert found is not None
    assert (found.kind, found.camps) == ("order", ((0, 3), (1, 2)))
    assert ["mesh_data" in found.calls[0], "mesh_tensor" in found.calls[1]] == [True, True]


def test_a_call_that_the_sibling_groups_have_made_was_left_out_by_who_waits_elsewhere() -> None:
    """Rank 0 skips the reduction over `data` and waits in a barrier of all; rank 2 waits for it,
    and ranks 1 and 3 have made theirs.
    """
    barrier = entry(2, "barrier", state="started")
    rows = {
        rank: [
            entry(1),
            along("data", rank, 1),
            *([along("data", rank, 2)] if rank in (1, 3) else []),
            barrier,
        ]
        for rank in (0, 1, 3)
    }
    dumps = mesh({**rows, 2: [entry(1), along("data", 2, 1), along("data", 2, 2, "started")]})
    found = parting(dumps, 4)
    assert found is not None
    assert (found.kind, found.position, found.camps) == ("left-out", 2, ((0,), (2,)))
    without = mesh(
        {
            **{
                rank: [row for row in rows[rank] if row["collective_seq_id"] == 1 or row is barrier]
                for rank in rows
            },
            2: [entry(1), along("data", 2, 1), along("data", 2, 2, "started")],
        }
    )
    other = parting(without, 4)
    assert other is None or other.kind != "left-out", (
        "no sibling has made it: then nobody can be told to have left it out"
    )


# ------------------------------------------------------------------------------- sends and receives


def test_a_receive_without_its_send_leads_to_the_rank_that_waits_for_nobody() -> None:
    """A pipeline: 3 waits for 2, 2 for 1, and 1 never sent."""
    groups = {"0": [0, 1, 2, 3]}
    dumps = {
        0: nccl([entry(1)], groups),
        1: nccl([entry(1)], groups),
        2: nccl([entry(1), send_or_recv("recv 2<-1", 1)], groups),
        3: nccl([entry(1), send_or_recv("recv 3<-2", 1)], groups),
    }
    waits = recorded_waits(facts_of(dumps), CELL)
    assert {rank: wait.awaited for rank, wait in waits.items()} == {2: (1,), 3: (2,)}
    assert ends(waits) == (1,)
    found = parting(dumps, 4)
    assert found is not None
    assert (found.kind, found.camps) == ("missing", ((1,), (2,)))
    assert "recv" in found.calls[1]
    assert "from rank 1" in found.calls[1]


def test_two_that_both_receive_wait_for_each_other() -> None:
    dumps = {
        0: nccl([entry(1), send_or_recv("recv 0<-1", 1)], {"0": [0, 1]}),
        1: nccl([entry(1), send_or_recv("recv 1<-0", 1)], {"0": [0, 1]}),
    }
    assert circles(recorded_waits(facts_of(dumps), CELL)) == ((0, 1),)


def test_a_send_that_meets_its_receive_waits_for_nobody() -> None:
    dumps = {
        0: nccl([entry(1), send_or_recv("send 0->1", 1)], {"0": [0, 1]}),
        1: nccl([entry(1), send_or_recv("recv 1<-0", 1)], {"0": [0, 1]}),
    }
    assert {wait.awaited for wait in recorded_waits(facts_of(dumps), CELL).values()} == {()}
    assert parting(dumps, 2) is None


def test_a_stage_of_a_pipeline_need_not_send_as_often_as_another() -> None:
    rows = [
        send_or_recv(f"send 0->{1 + number % 2}", number, state="completed") for number in range(6)
    ]
    dumps = {
        0: nccl([entry(1), *rows, entry(2, state="started")], WORLD3),
        1: nccl([entry(1), entry(2, state="started")], WORLD3),
        2: nccl([entry(1), entry(1, "coalesced"), entry(2, state="started")], WORLD3),
    }
    assert parting(dumps, 3) is None


def test_a_large_world_is_judged_in_a_moment() -> None:
    import time

    groups = {"0": list(range(512))}
    last = entry(40, state="started")
    dumps = {
        rank: nccl(
            [*(entry(seq) for seq in range(20, 40)), *([] if rank == 300 else [last])], groups
        )
        for rank in range(512)
    }
    facts = facts_of(dumps)
    began = time.monotonic()
    waits = recorded_waits(facts, CELL)
    assert ends(waits) == (300,)
    assert circles(waits) == ()
    assert time.monotonic() - began < 5
