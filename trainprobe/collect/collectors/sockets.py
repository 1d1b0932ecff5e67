"""Sockets of the job's processes, joined to the process at the other end where it is on this host.

From /proc/PID/net/{tcp,tcp6,udp,udp6,unix} of each network namespace (proc_net(5),
Documentation/networking/proc_net_tcp.rst) and the inodes of open descriptors. Nothing is sent to
anybody.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from trainprobe.collect import permission, procfs, tcp_ages, unix_peers
from trainprobe.collect.collector import Collector
from trainprobe.collect.descriptors import command_of, descriptors, find_owners
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

CONNECTIONS_CAP = 1500
TABLE_CAP_BYTES = 8 * 2**20
# Names as ss prints them, with underscores (include/net/tcp_states.h).
STATES = (
    "",
    "ESTAB",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSED",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
    "SYN_RECV",
)
TIMERS = ("", "retransmit", "keepalive", "time-wait", "zero-window")
HTTPS = ":443"


@dataclass(frozen=True)
class Connection(Fact):
    """One socket. `local` and `remote` are host:port; `peer_pid` is the process at the other end
    where it is on this host, `peer` its command line.

    `kind` is tcp, udp or unix, `state` ESTAB, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT,
    LAST_ACK, CLOSING, LISTEN or UNCONN. `rx_queue` and `tx_queue` are bytes that wait to be read or
    sent (for LISTEN, `rx_queue` counts connections that wait to be accepted), `retransmits` counts
    segments sent again without an answer, `timer` is retransmit, keepalive, zero-window or empty.
    `silent_s` is how long no data has gone either way, None where the kernel did not say (another
    network namespace). `peer_here` says whether the other end is a socket of this host (also where
    its process is not known); `peer_rank` is its rank in the job. `at` is when it was looked at,
    Unix time in seconds.
    """

    pid: int = 0
    fd: Optional[int] = None
    kind: str = ""
    state: str = ""
    local: str = ""
    remote: str = ""
    peer_pid: Optional[int] = None
    peer: str = ""
    rx_queue: Optional[int] = None
    tx_queue: Optional[int] = None
    retransmits: Optional[int] = None
    timer: str = ""
    peer_here: Optional[bool] = None
    peer_rank: Optional[int] = None
    silent_s: Optional[float] = None
    at: Optional[float] = None

    @property
    def port(self) -> Optional[int]:
        """The remote port; None for a unix socket."""
        digits = self.remote.rpartition(":")[2]
        return int(digits) if self.kind != "unix" and digits.isdecimal() else None


@dataclass(frozen=True)
class Row:
    """One socket. Queues in bytes; while it listens, `rx_queue` counts waiting connections."""

    kind: str
    state: str
    local: str
    remote: str
    inode: int
    tx_queue: int = 0
    rx_queue: int = 0
    retransmits: int = 0
    timer: str = ""
    peer_inode: int = 0


def read_sockets(members: Sequence[Member], deadline_s: float, proc: str = "/proc") -> LookResult:
    ends = time.monotonic() + deadline_s
    # Ranks first: a worker that was forked off holds its parent's sockets too and is not who uses
    # them.
    ranks = {
        member.pid: member.rank
        for member in sorted(members, key=lambda member: member.role != "rank")
    }
    owners: Dict[int, List[Tuple[int, int]]] = {}
    spaces: Dict[str, int] = {}
    hidden: List[int] = []
    for pid in ranks:
        theirs = descriptors(pid, proc)
        if theirs is None:
            if os.path.exists(f"{proc}/{pid}"):
                hidden.append(pid)
            continue
        for number, name in theirs.items():
            if name.startswith("socket:["):
                owners.setdefault(int(name[8:-1]), []).append((pid, number))
                spaces.setdefault(procfs.link(f"{proc}/{pid}/ns/net"), pid)
    if hidden and not owners:
        return refused(
            "denied",
            f"the descriptors of process {hidden[0]} are hidden:"
            f" {permission.why_refused(hidden[0])}",
            connections=[],
        )
    rows: List[Row] = []
    own_space = procfs.link(f"{proc}/self/ns/net") if proc == "/proc" else None
    for space, pid in spaces.items():
        rows += read_tables(f"{proc}/{pid}/net", unix_peers.ask(0.3) if space == own_space else {})
    found, whole = _joined(
        rows, owners, ranks, ends, proc, tcp_ages.ask() if own_space in spaces else {}
    )
    found.sort(key=_dullness)
    data: Dict[str, Any] = {"connections": found[:CONNECTIONS_CAP], "owners_complete": whole}
    if len(found) > CONNECTIONS_CAP:
        data["cut"] = len(found) - CONNECTIONS_CAP
    if hidden:
        return refused(
            "partial",
            f"the descriptors of {len(hidden)} processes are hidden:"
            f" {permission.why_refused(hidden[0])}",
            **data,
        )
    return LookResult(data)


def read_tables(folder: str, unix: Dict[int, unix_peers.UnixSocket]) -> List[Row]:
    """All sockets of one network namespace."""
    rows: List[Row] = []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        rows += parse_inet(name[:3], _table(f"{folder}/{name}"))
    return rows + parse_unix(_table(f"{folder}/unix"), unix)


def parse_inet(kind: str, text: str) -> List[Row]:
    """Lines of /proc/net/tcp and its like; what does not fit the format is left out."""
    rows = []
    for line in text.splitlines()[1:]:
        columns = line.split()
        try:
            tx_queue, rx_queue = (int(part, 16) for part in columns[4].split(":"))
            state = STATES[int(columns[3], 16)]
            state = "UNCONN" if kind == "udp" and state != "ESTAB" else state
            timer = TIMERS[int(columns[5].split(":")[0], 16)]
            local, remote = parse_address(columns[1]), parse_address(columns[2])
            inode, again = int(columns[9]), int(columns[6], 16)
            rows.append(Row(kind, state, local, remote, inode, tx_queue, rx_queue, again, timer))
        except (ValueError, IndexError, struct.error):
            continue
    return rows


def parse_address(text: str) -> str:
    """`0100007F:1F90` is 127.0.0.1:8080: words of 32 bits in the machine's byte order. An IPv4
    address inside IPv6 is shown as IPv4.

    Raises ValueError, or struct.error for a number that is none of 32 bits.
    """
    host, _, port = text.partition(":")
    packed = b"".join(
        struct.pack("=I", int(host[begin : begin + 8], 16)) for begin in range(0, len(host), 8)
    )
    if len(packed) == 16 and packed[:12] == b"\0" * 10 + b"\xff\xff":
        packed = packed[12:]
    if len(packed) not in (4, 16):
        raise ValueError(f"no address: {text[:60]!r}")
    name = socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
    return f"{name}:{int(port, 16)}" if len(packed) == 4 else f"[{name}]:{int(port, 16)}"


def parse_unix(text: str, unix: Dict[int, unix_peers.UnixSocket]) -> List[Row]:
    """Parse /proc/net/unix; state 3 is connected, flag 10000 listens."""
    rows = []
    for line in text.splitlines()[1:]:
        columns = line.split(None, 7)
        if len(columns) < 7 or not columns[6].isdecimal():
            continue
        state = (
            "LISTEN" if columns[3] == "00010000" else "ESTAB" if columns[5] == "03" else "UNCONN"
        )
        peer = unix.get(int(columns[6]), unix_peers.UnixSocket())
        path = columns[7] if len(columns) > 7 else ""
        rows.append(
            Row(
                "unix",
                state,
                path,
                "",
                int(columns[6]),
                peer.tx_queue,
                peer.rx_queue,
                peer_inode=peer.peer,
            )
        )
    return rows


def _joined(
    rows: List[Row],
    owners: Dict[int, List[Tuple[int, int]]],
    ranks: Dict[int, Optional[int]],
    ends: float,
    proc: str,
    silent: Dict[int, float],
) -> Tuple[List[Dict[str, Any]], bool]:
    """The job's own sockets, each with the process at its other end."""
    local_ends = {(row.kind, row.local, row.remote): row for row in rows if row.kind != "unix"}
    by_inode = {row.inode: row for row in rows}
    mine = [row for row in rows if row.inode in owners and row.inode]
    others = {
        row.inode: (
            by_inode.get(row.peer_inode)
            if row.peer_inode
            else local_ends.get((row.kind, row.remote, row.local))
        )
        for row in mine
    }
    strangers = {
        f"socket:[{other.inode}]"
        for other in others.values()
        if other is not None and other.inode and other.inode not in owners
    }
    outside = find_owners(strangers, ranks, ends, proc)
    commands: Dict[int, str] = {}
    found = []
    for row in mine:
        other = others[row.inode]
        at_the_end = (
            []
            if other is None
            else owners.get(other.inode) or outside.by_name.get(f"socket:[{other.inode}]", [])
        )
        peer_pid = at_the_end[0][0] if at_the_end else None
        if peer_pid is not None and peer_pid not in commands:
            commands[peer_pid] = command_of(peer_pid, proc)
        for pid, number in owners[row.inode]:
            found.append(
                {
                    "pid": pid,
                    "rank": ranks[pid],
                    "fd": number,
                    "kind": row.kind,
                    "state": row.state,
                    "local": row.local,
                    "remote": row.remote or (other.local if other is not None else ""),
                    "peer_here": other is not None,
                    "peer_pid": peer_pid,
                    "peer_rank": ranks.get(peer_pid) if peer_pid is not None else None,
                    "peer": commands.get(peer_pid, "") if peer_pid is not None else "",
                    "rx_queue": row.rx_queue,
                    "tx_queue": row.tx_queue,
                    "retransmits": row.retransmits,
                    "timer": row.timer,
                    "silent_s": silent.get(row.inode) if row.kind == "tcp" else None,
                }
            )
    return found, outside.whole


def _dullness(row: Dict[str, Any]) -> Tuple[bool, bool, int, int]:
    """The order of the list, which may be cut: stuck or full sockets, then web services."""
    telling = (
        row["state"] not in ("ESTAB", "LISTEN", "UNCONN")
        or row["rx_queue"]
        or row["tx_queue"]
        or row["retransmits"]
    )
    return (not telling, not row["remote"].endswith(HTTPS), row["pid"], row["fd"])


def _table(path: str) -> str:
    try:
        return procfs.read(path, TABLE_CAP_BYTES)
    except OSError:
        return ""


def parse_sockets(record: Evidence) -> List[Fact]:
    rows = fields.items(record.data, "connections")
    known = {"evidence": (record.id,), "cell": record.cell, "at": record.began or None}
    return list(fields.table(Connection, rows, **known))


def join_connections(facts: List[Fact]) -> List[Fact]:
    """Keep the connections of the latest look at each process."""
    latest: Dict[Tuple[str, int], float] = {}
    for fact in facts:
        if isinstance(fact, Connection):
            key = (fact.cell, fact.pid)
            latest[key] = max(latest.get(key, 0.0), fact.at or 0.0)
    return [
        fact
        for fact in facts
        if not isinstance(fact, Connection) or (fact.at or 0.0) >= latest[fact.cell, fact.pid]
    ]


COLLECTOR = Collector(
    "sockets",
    lambda job, deadline_s: read_sockets(job.members, deadline_s),
    deadline_s=1.0,
    source="/proc/PID/net",
    rounds=("first", "last"),
    parse=parse_sockets,
    join=join_connections,
    facts=(Connection,),
)
