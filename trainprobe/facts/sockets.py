"""Connections of the job's processes, joined to their other ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Connection(Fact):
    """One socket. `local` and `remote` are host:port; `peer_pid` is the process at the other end where it is on this host, `peer` its command line.

    `kind` is tcp, udp or unix, `state` ESTAB, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING, LISTEN or UNCONN.
    `rx_queue` and `tx_queue` are bytes that wait to be read or sent (for LISTEN, `rx_queue` counts connections that wait to be accepted),
    `retransmits` counts segments sent again without an answer, `timer` is retransmit, keepalive, zero-window or empty.
    `silent_s` is how long no data has gone either way, None where the kernel did not say (another network namespace).
    `peer_here` says whether the other end is a socket of this host (also where its process is not known); `peer_rank` is its rank in the job.
    `at` is when it was looked at, Unix time in seconds.
    """

    pid: int = 0
    fd: int | None = None
    kind: str = ""
    state: str = ""
    local: str = ""
    remote: str = ""
    peer_pid: int | None = None
    peer: str = ""
    rx_queue: int | None = None
    tx_queue: int | None = None
    retransmits: int | None = None
    timer: str = ""
    peer_here: bool | None = None
    peer_rank: int | None = None
    silent_s: float | None = None
    at: float | None = None

    @property
    def port(self) -> int | None:
        """The remote port; None for a unix socket."""
        digits = self.remote.rpartition(":")[2]
        return int(digits) if self.kind != "unix" and digits.isdigit() else None


def parse_sockets(record: Evidence) -> list[Fact]:
    def connection(row: Mapping[str, Any]) -> Fact:
        return Connection(
            evidence=(record.id,),
            cell=record.cell,
            rank=fields.whole(row, "rank"),
            pid=fields.whole(row, "pid") or 0,
            fd=fields.whole(row, "fd"),
            kind=fields.text(row, "kind"),
            state=fields.text(row, "state"),
            local=fields.text(row, "local"),
            remote=fields.text(row, "remote"),
            peer_pid=fields.whole(row, "peer_pid"),
            peer=fields.text(row, "peer"),
            rx_queue=fields.whole(row, "rx_queue"),
            tx_queue=fields.whole(row, "tx_queue"),
            retransmits=fields.whole(row, "retransmits"),
            timer=fields.text(row, "timer"),
            peer_here=fields.flag(row, "peer_here"),
            peer_rank=fields.whole(row, "peer_rank"),
            silent_s=fields.number(row, "silent_s"),
            at=record.began or None,
        )

    return fields.each(fields.items(record.data, "connections"), connection)


def join_connections(facts: list[Fact]) -> list[Fact]:
    """Keep of each process the connections of the latest look: what they carried last is what several looks differ in."""
    latest: dict[tuple[str, int], float] = {}
    for fact in facts:
        if isinstance(fact, Connection):
            key = (fact.cell, fact.pid)
            latest[key] = max(latest.get(key, 0.0), fact.at or 0.0)
    return [fact for fact in facts if not isinstance(fact, Connection) or (fact.at or 0.0) >= latest[fact.cell, fact.pid]]
