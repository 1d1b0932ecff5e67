"""Calls of collectives that NCCL printed as they were launched (NCCL_DEBUG=INFO,
NCCL_DEBUG_SUBSYS=COLL).

Source: NCCL 2.4 to 2.28, src/enqueue.cc.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from trainprobe.facts.collectives import LAUNCHED, CollectiveCall
from trainprobe.facts.log_rows import Row, rows_of
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

_CALL = re.compile(
    r"NCCL INFO (?P<op>[A-Z]\w{1,30}): opCount (?P<number>[0-9a-f]{1,15}) .{0,80}\bcount"
    r" (?P<count>\d{1,18}) .{0,60}\bcomm (?P<comm>\S{1,20}) \[nranks=(?P<size>\d{1,7})\]"
)
_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def parse_nccl_calls(record: Evidence) -> list[Fact]:
    """One CollectiveCall per such line. Its `group` is the communicator's size and its `desc` the
    address, which differs from rank to rank.
    """
    return [
        call
        for row in rows_of(record)
        if row.rank is not None and "opCount " in row.text
        for call in _read(record, row)
    ]


def join_nccl_calls(facts: list[Fact]) -> list[Fact]:
    """Leave out the calls of which the communicator cannot be told: those of a rank with several
    of one size, and those of more ranks than it has.
    """
    printed = [
        fact for fact in facts if isinstance(fact, CollectiveCall) and fact.source == LAUNCHED
    ]
    ranks: dict[tuple[str, str], dict[int | None, set[str]]] = defaultdict(lambda: defaultdict(set))
    for call in printed:
        ranks[call.cell, call.group][call.rank].add(call.desc)
    told = {
        key
        for key, comms in ranks.items()
        if len(comms) <= int(key[1]) and all(len(some) == 1 for some in comms.values())
    }
    return [
        fact
        for fact in facts
        if not (isinstance(fact, CollectiveCall) and fact.source == LAUNCHED)
        or (fact.cell, fact.group) in told
    ]


def _read(record: Evidence, row: Row) -> Iterator[CollectiveCall]:
    match = _CALL.search(row.text)
    if match is not None:
        yield CollectiveCall(
            (record.id,),
            record.cell,
            row.rank,
            number=int(match["number"], 16),
            op=_NEXT_WORD.sub("_", match["op"]).lower(),
            group=match["size"],
            at=row.at or 0.0,
            source=LAUNCHED,
            desc=match["comm"],
            numel_in=int(match["count"]),
            place=row.place,
            seen_at=row.seen_at,
        )
