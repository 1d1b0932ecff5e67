"""A rank that wrote two dumps of one backend is told by the newer one alone: `--deep` beside one
that lay on the disk.
"""

from __future__ import annotations

from trainprobe.facts import read
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject


def dump(name: str, written_at: float, seq: int, backend: str = "gloo", rank: int = 0) -> Evidence:
    entry = {
        "group": "0",
        "desc": "default_pg",
        "seq": seq,
        "op": "all_reduce",
        "backend": backend,
        "state": "scheduled",
    }
    data = {
        "rank": rank,
        "bytes": 3,
        "written_at": written_at,
        "backend": backend,
        "groups": [],
        "frames": [],
        "status": {},
        "entries": [entry],
    }
    return Evidence(name, "flight_recorder", Subject("rank", rank=rank), "job", data=data)


def test_the_newer_of_two_dumps_counts_and_other_backends_and_ranks_are_kept() -> None:
    facts = read(
        [
            dump("E1", 5.0, 3),
            dump("E2", 9.0, 4),
            dump("E3", 1.0, 8, "nccl"),
            dump("E4", 1.0, 2, rank=1),
        ]
    )
    assert [(call.rank, call.number, call.backend) for call in facts.of(CollectiveCall)] == [
        (0, 4, "gloo"),
        (0, 8, "nccl"),
        (1, 2, "gloo"),
    ]
