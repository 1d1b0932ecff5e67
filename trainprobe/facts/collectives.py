"""Calls of collectives that a rank made, one fact per call, in order: from the witness's journal,
torch's flight recorder, NCCL's RAS or a log.

The journal is a small memory-mapped ring beside the rank's events, so that it survives an abort or
a kill of the rank.
`facts/flight_dumps.py` builds the same fact from a recorder's dump, `facts/launched_calls.py` from
what RAS counts, `facts/timed_out_calls.py` from the lines of a watchdog, `facts/compared_calls.py`
from finger prints, `facts/nccl_calls.py` from NCCL's own lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame

WITNESS = "witness"
RECORDER = "flight-recorder"
WATCHDOG = "watchdog"
COUNTED = "ras"
COMPARED = "finger-print"
REPORTED = "desync-report"
LAUNCHED = "nccl-log"
NO_NUMBER = -1

# ProcessGroupNCCL's names of operations (opTypeToString, torch/csrc/distributed/c10d/Work.cpp) as
# torch's functions are called.
_OPERATIONS = {
    "ALLREDUCE": "all_reduce",
    "ALLREDUCE_COALESCED": "allreduce_coalesced",
    "BROADCAST": "broadcast",
    "REDUCE": "reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "ALLGATHER_INTO_TENSOR": "all_gather_into_tensor",
    "ALLGATHER_COALESCED": "ALLGATHER_coalesced",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "REDUCE_SCATTER_TENSOR": "reduce_scatter_tensor",
    "GATHER": "gather",
    "SCATTER": "scatter",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
    "SEND": "send",
    "RECV": "recv",
    "RECVANYSOURCE": "recv",
    "BARRIER": "barrier",
    "COALESCED": "coalesced",
}
POINT_TO_POINT = frozenset(
    {
        "send",
        "recv",
        "isend",
        "irecv",
        "batch_isend_irecv",
        "send_object_list",
        "recv_object_list",
        "coalesced",
    }
)


@dataclass(frozen=True)
class CollectiveCall(Fact):
    """One call. `number` counts this rank's calls in `group`, from 0 in the journal; elsewhere it
    is the group's sequence number.

    `number` is NO_NUMBER where a log does not name it. `sizes` and `dtype` are those of its first
    tensor; `numel_in` and `numel_out` are the elements of all its inputs and of all its outputs,
    None where unknown. `finished` is false when the rank was still inside when the journal was
    read; in the recorder, when the work was not done, whether or not the rank's Python waited for
    it; always in a log, where the call ran into its timeout. `at` is Unix time in seconds, 0 where
    unknown. From a log only: `place` orders its lines, and `seen_at` is file and line.

    From the recorder, the first two also from RAS: `members` are the world ranks of the group, in
    the order of their ranks in it, () where unknown;
    `members_known` is false where they are only those that were seen; `desc` names the group in
    words; `state` is scheduled, started or completed; `retired` means that the backend gave it up
    or was done with it; `p2p` is a send or receive and `peer` the world rank at its other end
    (None: any, or unknown); `frames` are the frames that are neither torch's nor Python's own,
    outermost first.
    """

    number: int = 0
    op: str = ""
    group: str = ""
    sizes: tuple[int, ...] = ()
    dtype: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    at: float = 0.0
    finished: bool = True
    source: str = WITNESS
    members: tuple[int, ...] = ()
    members_known: bool = False
    desc: str = ""
    state: str = ""
    retired: bool = False
    p2p: bool = False
    peer: int | None = None
    frames: tuple[Frame, ...] = ()
    backend: str = ""
    timeout_s: float = 0.0
    numel_in: int | None = None
    numel_out: int | None = None
    place: int | None = None
    seen_at: str = ""

    @property
    def pending(self) -> bool:
        return not self.finished

    @property
    def recorded(self) -> bool:
        """By torch's flight recorder, not by our witness."""
        return self.source == RECORDER

    @property
    def journalled(self) -> bool:
        """By our witness, which misses no call."""
        return self.source == WITNESS

    @property
    def partial(self) -> bool:
        """From a source that shows few calls of a rank: often only the one that it is stuck in."""
        return self.source in (WATCHDOG, COMPARED, COUNTED, REPORTED, LAUNCHED)


def operation(name: str) -> str:
    """`all_reduce` for the backend's `ALLREDUCE`; names that are not known in lower case."""
    return _OPERATIONS.get(name) or (name.lower() if name.isupper() else name)


def parse(record: Evidence) -> list[CollectiveCall]:
    """Read a `collectives` record: data {"calls": [{number, op, group, sizes, dtype, file, line,
    function, at, finished}]}.
    """
    calls = record.data.get("calls")
    if not isinstance(calls, (list, tuple)):
        return []
    return [
        _call(record, row)
        for row in calls
        if isinstance(row, Mapping) and isinstance(row.get("op"), str)
    ]


def _call(record: Evidence, row: Mapping[str, Any]) -> CollectiveCall:
    sizes = row.get("sizes")
    return CollectiveCall(
        evidence=(record.id,),
        cell=record.cell,
        rank=record.subject.rank,
        number=_number(row.get("number")),
        op=str(row["op"]),
        group=str(row.get("group") or ""),
        sizes=tuple(_number(size) for size in sizes) if isinstance(sizes, (list, tuple)) else (),
        dtype=str(row.get("dtype") or ""),
        file=str(row.get("file") or ""),
        line=_number(row.get("line")),
        function=str(row.get("function") or ""),
        at=(
            float(_number(row.get("at")))
            if not isinstance(row.get("at"), float)
            else float(row["at"])
        ),
        finished=row.get("finished") is True,
    )


def _number(value: object) -> int:
    return (
        int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18
        else 0
    )
