"""Dumps of the flight recorder become plain data and facts, whatever backend, version and form
they have.
"""

from __future__ import annotations

import json
import pickle

import pytest

from tests.unit.recorder.dumps import CELL, entry, facts_of, in_group, nccl, real, send_or_recv
from trainprobe.collect.dump_files_child import NoDumpError, read_dump
from trainprobe.collect.flight_reading import LAST_PER_GROUP, rank_in_entries, rank_in_name
from trainprobe.facts import CollectiveCall, FlightDump


def test_a_real_dump_of_gloo_is_read() -> None:
    said = read_dump(real("missing")[0])
    assert (said["format"], said["version"], said["backend"], said["dropped"]) == (
        "pickle",
        "2.10",
        "gloo",
        0,
    )
    assert said["status"] == {"0": {"last_enqueued": 4, "last_started": -1, "last_completed": 3}}
    assert said["groups"] == []  # gloo writes them under an empty name
    assert [(one["seq"], one["op"], one["pending"]) for one in said["entries"]] == [
        (1, "all_reduce", False),
        (2, "all_reduce", False),
        (3, "all_reduce", False),
        (4, "all_reduce", True),
    ]
    last = [said["frames"][place] for place in said["entries"][-1]["frames"]]
    assert [(one["name"], one["line"]) for one in last if one["file"] == "/home/user/train.py"] == [
        ("reduce_loss", 22),
        ("main", 87),
        ("<module>", 91),
    ]


def test_json_tells_the_same_without_frames() -> None:
    pickled, text = read_dump(real("missing")[0]), read_dump(real("missing-json")[0])
    assert (text["format"], text["frames"]) == ("json", [])
    assert text["status"] == pickled["status"]
    for mine, other in zip(text["entries"], pickled["entries"], strict=True):
        assert {**mine, "frames": []} == {**other, "frames": []}


def test_numbers_written_as_text_are_numbers() -> None:
    content = json.dumps(
        {
            "version": "2.5",
            "pg_status": {
                "0": {"last_enqueued_collective": "7", "last_completed_collective": "-1"}
            },
            "entries": [],
        }
    )
    assert read_dump(content.encode())["status"] == {
        "0": {"last_enqueued": 7, "last_started": -1, "last_completed": -1}
    }


@pytest.mark.parametrize(
    ("backend", "state", "retired", "pending"),
    [
        ("gloo", "scheduled", True, False),
        ("gloo", "scheduled", False, True),
        ("nccl", "completed", True, False),
        ("nccl", "started", False, True),
        ("nccl", "scheduled", False, True),
        ("nccl", "scheduled", True, True),  # given up by the watchdog: it timed out
        ("nccl2", "scheduled", False, True),
        ("nccl2", "completed", True, False),
        ("xccl", "scheduled", True, False),
    ],
)
def test_what_is_pending_differs_by_backend(
    backend: str, state: str, retired: bool, pending: bool
) -> None:
    said = read_dump(nccl([entry(1, state=state, retired=retired)], {"0": [0, 1]}, backend=backend))
    assert (said["entries"][0]["pending"], said["backend"]) == (pending, backend)


@pytest.mark.parametrize("version", ["2.0", "2.4", "2.10", "3.1"])
def test_versions_are_read_leniently(version: str) -> None:
    row = entry(5, state="started")
    for name in (
        "op_id",
        "p2p_seq_id",
        "retired",
        "timeout_ms",
        "is_p2p",
        "input_dtypes",
        "frames",
    ):
        row.pop(name)
    row["a_new_field"] = {"of": ["another", 1]}
    said = read_dump(nccl([row], {"0": [0, 1]}, version=version))
    assert (said["version"], said["entries"][0]["seq"], said["entries"][0]["pending"]) == (
        version,
        5,
        True,
    )


def test_facts_carry_group_members_and_call_site() -> None:
    facts = facts_of(
        {0: nccl([entry(1), entry(2, state="started", line=42)], {"0": [0, 1], "7": [0]})}
    )
    call = facts.of(CollectiveCall, cell=CELL)[-1]
    assert (call.source, call.number, call.op, call.group, call.desc) == (
        "flight-recorder",
        2,
        "all_reduce",
        "0",
        "default_pg",
    )
    assert (call.members, call.members_known, call.pending, call.state, call.timeout_s) == (
        (0, 1),
        True,
        True,
        "started",
        600.0,
    )
    assert (call.file, call.line, call.function) == ("/home/user/train.py", 42, "step")
    assert [frame.line for frame in call.frames] == [99, 42]  # torch's own frames are gone
    dump = facts.of(FlightDump)[0]
    assert (dump.version, dump.backend, dump.entries, dump.pending, dump.groups[0].pending) == (
        "2.10",
        "nccl",
        2,
        1,
        1,
    )


def test_peers_of_a_group_are_world_ranks() -> None:
    rows = [send_or_recv("recv 1<-0", 3, **in_group("5", 2))]
    call = facts_of({6: nccl(rows, {"5": [4, 6]})}).of(CollectiveCall)[0]
    assert (call.op, call.p2p, call.number, call.peer, call.members) == ("recv", True, 3, 4, (4, 6))


def test_the_journal_of_the_witness_stands_alone() -> None:
    from trainprobe.facts.flight_dumps import join_recorded_calls

    recorded = list(facts_of(real("missing")).all)
    journalled = CollectiveCall(("E9",), CELL, 0, 0, "barrier")
    kept = [
        fact
        for fact in join_recorded_calls([*recorded, journalled])
        if isinstance(fact, CollectiveCall)
    ]
    assert kept == [journalled]


def test_the_members_of_a_group_are_folded_and_keep_their_order() -> None:
    said = read_dump(nccl([entry(1)], {"0": range(1000), "5": [4, 5, 6, 0, 2]}))
    assert [group["ranks"] for group in said["groups"]] == ["0-999", "4-6,0,2"]
    call = facts_of({0: nccl([entry(1, **in_group("5", 1))], {"5": [4, 5, 6, 0, 2]})}).of(
        CollectiveCall
    )[0]
    assert call.members == (4, 5, 6, 0, 2)


def test_text_that_is_not_utf_8_costs_only_its_odd_bytes() -> None:
    content = nccl([entry(1, thread_name="pt_nccl_h")], {"0": [0, 1]})
    cut = content.replace(b"pt_nccl_h", b"pt_nccl_\xc3")
    assert cut != content
    assert read_dump(cut) == read_dump(content)


def test_a_long_dump_keeps_the_last_of_each_group_and_what_is_pending() -> None:
    rows = [entry(seq, state="started" if seq == 3 else "completed") for seq in range(1, 1001)] + [
        entry(1, **in_group("1", 1))
    ]
    said = read_dump(nccl(rows, {"0": [0, 1], "1": [0]}))
    seqs = [one["seq"] for one in said["entries"] if one["group"] == "0"]
    assert (len(seqs), seqs[0], seqs[1], seqs[-1]) == (
        LAST_PER_GROUP + 1,
        3,
        1001 - LAST_PER_GROUP,
        1000,
    )
    assert said["dropped"] == 1001 - len(said["entries"])


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3),
        ("/home/u/.cache/torch/comm_lib_trace_rank_12", 12),
        ("run/_dump_7", 7),
        ("rank3.pkl", 3),
        ("comm_traces/rank_0", 0),
        ("rank_5/dump.pickle", 5),
        ("node12-rank03.json", 3),
        ("host7_r4.txt", 4),
        ("node2_local_rank_1_global_rank_9", 9),
        ("trace-0003.pickle", 3),
        ("dump", None),
        ("20261121_dump.pkl", None),
    ],
)
def test_the_rank_is_told_by_the_name(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def test_the_rank_is_told_by_sends_where_no_name_does() -> None:
    entries = read_dump(
        nccl([send_or_recv("send 3->1", 1), send_or_recv("recv 3<-0", 2)], {"0": [0, 1, 2, 3]})
    )["entries"]
    assert rank_in_entries(entries) == 3
    assert rank_in_entries(read_dump(real("missing")[0])["entries"]) is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"{}", "neither entries nor process groups"),
        (b'{"entries": [', "ends in the middle"),
        (pickle.dumps([1, 2]), "neither entries nor process groups"),
        (b"hello", "do not fit together"),
        (b"[" * 5000 + b"]" * 5000, "no pickle"),
        (b'{"loss": 1}', "neither entries nor process groups"),
        (b'{"entries":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_dump_is_told_why(content: bytes, says: str) -> None:
    with pytest.raises(NoDumpError, match=says):
        read_dump(content)


@pytest.mark.parametrize(
    "entries",
    [
        [None],
        [5],
        ["x"],
        {"a": 1},
        [{"profiling_name": []}],
        [{"profiling_name": "nccl:x", "frames": 3, "input_sizes": {}}],
        7,
    ],
)
@pytest.mark.parametrize(
    "groups",
    [
        {"0": None},
        {"0": {"ranks": {"a": 1}}},
        [],
        {"0": {"ranks": "[x, 1e9]"}},
        {None: {"name": 4}},
    ],
)
def test_fields_of_another_type_are_left_out(entries: object, groups: object) -> None:
    said = read_dump(
        pickle.dumps(
            {"version": 2.1, "pg_config": groups, "pg_status": {3: []}, "entries": entries}
        )
    )
    assert all(one["op"] == "x" for one in said["entries"])
    json.dumps(said)
