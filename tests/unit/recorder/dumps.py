"""Dumps for the tests: real ones of gloo (torch 2.13, three ranks, written by `_dump_fr_trace`),
and made ones of NCCL.

The programs behind the real ones all begin with three `all_reduce` from `reduce_loss`
(train.py:22). Then, in
missing: rank 1 sleeps instead of joining the next; type: rank 1 broadcasts where the others reduce;
site: rank 0 alone saves a checkpoint with a barrier in it; pairing: the same, and its barrier pairs
with the others' last one; groups: ranks 0 and 1 use two groups in opposite order; p2p: ranks 0 and
1 both receive, which gloo does not record; subgroup: rank 2 never joins a group of ranks 1 and 2;
done: all sleep.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainprobe.collect.dump_files_child import read_dump
from trainprobe.collect.flight_reading import rank_in_name
from trainprobe.facts import CollectiveCall, Facts, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.waits.divergence import earliest_divergence
from trainprobe.waits.suspects import Divergence

DATA = Path(__file__).parent / "data"
CELL = "job"


def real(kind: str) -> dict[int, bytes]:
    """The dumps of one hung program, by rank."""
    return {
        rank: path.read_bytes()
        for path in sorted((DATA / kind).iterdir())
        if (rank := rank_in_name(str(path))) is not None
    }


def entry(
    seq: int, op: str = "all_reduce", *, line: int = 10, state: str = "completed", **more: Any
) -> dict[str, Any]:
    """One entry of NCCL's, with a user frame at train.py:`line` below torch's own."""
    frames = [
        {
            "name": op,
            "filename": (
                "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
            ),
            "line": 3000,
        },
        {"name": "step", "filename": "/home/user/train.py", "line": line},
        {"name": "<module>", "filename": "/home/user/train.py", "line": 99},
    ]
    made: dict[str, Any] = {
        "frames": frames,
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": f"nccl:{op}",
        "time_created_ns": 1_700_000_000_000_000_000 + seq * 1_000_000,
        "input_sizes": [[4]],
        "output_sizes": [[4]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": False,
    }
    return {**made, **more}


def send_or_recv(
    words: str, number: int, *, state: str = "scheduled", **more: Any
) -> dict[str, Any]:
    """`send 0->1` or `recv 1<-0`, by ranks of the group."""
    return entry(1, words, state=state, is_p2p=True, p2p_seq_id=number, **more)


def nccl(
    entries: Iterable[Mapping[str, Any]],
    groups: Mapping[str, Sequence[int]],
    *,
    version: str = "2.10",
    backend: str = "nccl",
) -> bytes:
    """A dump as NCCL's or nccl2's recorder writes it: with the members of each group, as text."""
    config = {
        name: {
            "name": name,
            "desc": "default_pg" if name == "0" else f"desc{name}",
            "ranks": str(list(ranks)),
        }
        for name, ranks in groups.items()
    }
    rows = [
        {**row, "profiling_name": str(row["profiling_name"]).replace("nccl:", f"{backend}:")}
        for row in entries
    ]
    status = {
        "0": {
            "last_enqueued_collective": 1,
            "last_started_collective": 1,
            "last_completed_collective": 1,
        }
    }
    return pickle.dumps(
        {
            "version": version,
            "pg_config": config,
            "pg_status": status,
            "comm_lib_version": "2.27.3",
            "entries": rows,
        },
        protocol=2,
    )


def in_group(name: str, pg_id: int) -> dict[str, Any]:
    return {"process_group": (name, f"desc{name}"), "pg_id": pg_id}


def facts_of(dumps: Mapping[int, bytes]) -> Facts:
    """Facts from dumps by rank, as a case would give them."""
    return read(
        Evidence(
            f"E{rank}",
            "flight_recorder",
            Subject("rank", rank=rank),
            CELL,
            data={"rank": rank, "path": f"rank_{rank}", **read_dump(content)},
        )
        for rank, content in dumps.items()
    )


def parting(dumps: Mapping[int, bytes], world: int) -> Divergence | None:
    """The earliest divergence of a hung job with these dumps."""
    facts = facts_of(dumps)
    return earliest_divergence(
        facts.of(CollectiveCall, cell=CELL), range(world), hung=True, dumped=list(dumps)
    )
