"""Connections between the ranks of several hosts that rest, of which thousands of ranks have
millions. Few of them tell anything, so the others never become facts.

One stays for each address from which a process speaks, those in whose descriptor a process waits,
and the one that has been silent for the shortest time, among all of a process and among those to
other ports than the store's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.facts.jobs import Job
from trainprobe.facts.processes import ProcessState
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.record_classes import LazyData

KIND = "sockets"
LOOPBACK = ("127.", "[::1]")  # the same address means another socket on each host
Pids = Callable[[Any], Any]
_Columns = Mapping[str, Sequence[Any]]
_NAMES = (
    "pid",
    "rank",
    "fd",
    "kind",
    "state",
    "local",
    "remote",
    "peer_pid",
    "peer_rank",
    "rx_queue",
    "tx_queue",
    "retransmits",
    "timer",
    "silent_s",
)


@dataclass(frozen=True)
class _Known:
    """What is known of the job: its ranks' processes, the descriptors in which processes wait, and
    the ports of the store, each by cell.
    """

    ranks: frozenset[tuple[str, int]]
    awaited: frozenset[tuple[str, int, int]]
    stores: Mapping[str, frozenset[str]]
    renumbered: Mapping[tuple[str, int], int]


def without_resting(
    records: Sequence[Evidence],
    facts: Iterable[Fact],
    at_host: Callable[[Evidence], Evidence],
    pids_of: Callable[[str], Pids],
    renumbered: Mapping[tuple[str, int], int],
) -> Iterator[Evidence]:
    """The records of sockets, each with the connections that tell something and with the process
    at the other end where that is on another host. `facts` are those of all other records.

    `at_host` and `pids_of` tell how a record and a pid of a host are written, `renumbered` the
    rank of a process whose own host did not know it.
    """
    known = _known(facts, renumbered)
    ends = _ends(records)
    for record in records:
        try:
            rows = _telling(record, ends, known, pids_of) if ends is not None else None
        except (TypeError, ValueError, AttributeError, OverflowError):
            rows = None  # its parser says what is wrong
        if rows is None:
            yield at_host(record)
        else:
            yield replace(at_host(replace(record, data={})), data={"connections": rows})


def _known(facts: Iterable[Fact], renumbered: Mapping[tuple[str, int], int]) -> _Known:
    ranks: set[tuple[str, int]] = set()
    awaited: set[tuple[str, int, int]] = set()
    stores: dict[str, frozenset[str]] = {}
    for fact in facts:
        if isinstance(fact, ProcessState):
            awaited.update((fact.cell, fact.pid, fd) for fd in fact.blocked.descriptors)
            if fact.role == "rank":
                ranks.add((fact.cell, fact.pid))
        elif isinstance(fact, Job):
            stores[fact.cell] = stores.get(fact.cell, frozenset()) | fact.store_ports
    return _Known(frozenset(ranks), frozenset(awaited), stores, renumbered)


# By cell, and by both addresses as one text, of which there are millions.
_Ends = dict[str, dict[str, tuple[str, Any, Any]]]


def _ends(records: Iterable[Evidence]) -> _Ends | None:
    """The connections that leave their hosts, with the host, the pid and the rank that has each; of
    several looks at a process the last counts. None where a table has another form than ours.
    """
    ends: _Ends = {}
    told: dict[tuple[str, str], set[Any]] = {}
    for record in sorted(records, key=lambda one: -one.began):
        columns = _columns(record)
        if columns is None:
            if record.outcome in ("ok", "partial") and record.data.get("connections"):
                return None  # then nobody knows which connections lead there
            continue
        host = record.subject.host
        of_cell = ends.setdefault(record.cell, {})
        before = told.setdefault((record.cell, host), set())
        owners: dict[tuple[Any, Any], tuple[str, Any, Any]] = {}
        try:
            for kind, pid, rank, peer, local, remote in zip(
                *(columns[name] for name in ("kind", "pid", "rank", "peer_pid", "local", "remote")),
                strict=True,
            ):
                if (
                    kind == "tcp"
                    and not peer
                    and not local.startswith(LOOPBACK)
                    and pid not in before
                ):
                    owner = owners.setdefault((pid, rank), (host, pid, rank))
                    of_cell.setdefault(f"{local} {remote}", owner)
            before.update(columns["pid"])
        except (TypeError, AttributeError):
            return None
    return ends


def _telling(
    record: Evidence, ends: _Ends, known: _Known, pids_of: Callable[[str], Pids]
) -> list[dict[str, Any]] | None:
    """The rows that stay. None where the table has another form than ours."""
    columns = _columns(record)
    if columns is None:
        return None
    cell, wrap = record.cell, pids_of(record.subject.host)
    found = ends.get(cell, {})
    stores = known.stores.get(cell, frozenset())
    stays: set[int] = set()
    silent: dict[tuple[Any, bool], tuple[float, int]] = {}
    addresses: set[tuple[Any, str]] = set()
    others: dict[int, tuple[Any, Any]] = {}
    rows = zip(*(columns[name] for name in _NAMES), strict=True)
    for place, (
        own,
        _,
        fd,
        kind,
        state,
        local,
        remote,
        peer_pid,
        told_rank,
        rx_queue,
        tx_queue,
        retransmits,
        timer,
        silent_s,
    ) in enumerate(rows):
        pid = wrap(own)
        peer, peer_rank = wrap(peer_pid), told_rank
        if not peer_pid and kind == "tcp" and not local.startswith(LOOPBACK):
            end = found.get(f"{remote} {local}")
            if end is not None:
                peer = pids_of(end[0])(end[1])
                peer_rank = known.renumbered.get((cell, peer), end[2])
                others[place] = peer, peer_rank
        rests = (
            state == "ESTAB"
            and peer_rank is not None
            and not (rx_queue or tx_queue or retransmits or timer)
            and (cell, pid) in known.ranks
            and (cell, peer) in known.ranks
            and (cell, pid, fd) not in known.awaited
        )
        host, _, port = local.rpartition(":")
        of_store = port in stores or remote.rpartition(":")[2] in stores
        address = (own, host)
        if not rests or address not in addresses or (of_store and len(stores) > 1):
            stays.add(place)
        addresses.add(address)
        if rests and silent_s is not None and peer != pid:
            for which in {of_store, True}:
                least = silent.get((own, which), (math.inf, 0))
                if silent_s < least[0]:
                    silent[own, which] = silent_s, place
    stays.update(place for _, place in silent.values())
    names, table = list(columns), list(columns.values())
    kept: list[dict[str, Any]] = []
    for place in sorted(stays):
        row = dict(zip(names, (column[place] for column in table), strict=True))
        row["pid"], row["peer_pid"] = wrap(row["pid"]), wrap(row["peer_pid"])
        if place in others:
            row["peer_pid"], row["peer_rank"] = others[place]
        kept.append(row)
    return kept


def _columns(record: Evidence) -> _Columns | None:
    """The columns of its table; None where there is none, or one lacks some of them."""
    if record.outcome not in ("ok", "partial"):
        return None
    if isinstance(record.data, LazyData):
        columns = record.data.table("connections")
    else:
        columns = _transposed(record.data.get("connections"))
    return columns if columns is not None and columns.keys() >= set(_NAMES) else None


def _transposed(rows: Any) -> dict[str, Sequence[Any]] | None:
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return None
    names = tuple(rows[0])
    if not all(isinstance(row, dict) and tuple(row) == names for row in rows):
        return None
    return {name: [row[name] for row in rows] for name in names}
