"""Network ports of this host: state, bytes, errors and retransmits. Made twice, since counters tell
by their rise.

InfiniBand and EFA from /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband), the
others from the job's own /proc/PID/net.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.collect import procfs
from trainprobe.collect.collector import Collector
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

PORTS_CAP = 64
DATA_WORD_BYTES = 4  # port_xmit_data and port_rcv_data count words of four bytes
# Counters that stand still on a healthy port. port_xmit_wait, packet_seq_err and the like rise
# under mere congestion, and count as waits.
ERRORS = (
    "symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors"
    " port_rcv_constraint_errors port_xmit_discards port_xmit_constraint_errors"
    " local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped"
    " local_ack_timeout_err req_transport_retries_exceeded req_cqe_error req_cqe_flush_error"
    " resp_cqe_error rx_icrc_encapsulated rx_drops retrans_timeout_events"
    " impaired_remote_conn_events unresponsive_remote_events"
)
WAITS = (
    "port_xmit_wait packet_seq_err out_of_sequence rnr_nak_retry_err implied_nak_seq_err"
    " roce_slow_restart rp_cnp_handled np_cnp_sent retrans_pkts"
)
TCP = (
    "RetransSegs OutSegs InErrs EstabResets AttemptFails TCPTimeouts TCPAbortOnTimeout"
    " ListenOverflows"
)
# Columns of /proc/net/dev.
INTERFACE_COUNTERS = {"received_bytes": 0, "sent_bytes": 8, "rx_dropped": 3, "tx_dropped": 11}
INTERFACE_ERRORS = {"rx_errors": 2, "rx_frame": 5, "tx_errors": 10, "tx_carrier": 14}
# Of InfiniBand, which counts words, then of EFA.
DATA_COUNTERS = {
    "port_xmit_data": ("sent_bytes", DATA_WORD_BYTES),
    "port_rcv_data": ("received_bytes", DATA_WORD_BYTES),
    "tx_bytes": ("sent_bytes", 1),
    "rx_bytes": ("received_bytes", 1),
}
BYTES = {
    "sent_bytes": "sent_bytes",
    "received_bytes": "received_bytes",
    "RetransSegs": "retransmits",
}


@dataclass(frozen=True)
class PortCounters(Fact):
    """One port (`mlx5_0/1`, `eth0`, `tcp` for the host's TCP). `state` is ACTIVE, DOWN, up or down;
    counts are increases between the looks.

    `kind` is infiniband, efa, ethernet or tcp. `errors` holds the names of the error counters that
    grew, with by how much; `waits` those that grow under congestion too; `totals` the error
    counters that are not 0, since the port came up. Counts are None where there was one look.
    `host` is told where the job was looked at on several.
    """

    port: str = ""
    kind: str = ""
    state: str = ""
    sent_bytes: Optional[int] = None
    received_bytes: Optional[int] = None
    retransmits: Optional[int] = None
    errors: Dict[str, int] = field(default_factory=dict)
    waits: Dict[str, int] = field(default_factory=dict)
    totals: Dict[str, int] = field(default_factory=dict)
    looked_s: Optional[float] = None
    host: str = ""


@dataclass(frozen=True)
class PortLook(PortCounters):
    """One look, before two become counts. `counters` and `totals` count since the port came up."""

    look: int = 1
    at: float = 0.0
    counters: Dict[str, int] = field(default_factory=dict)


def read_ports(
    members: Sequence[Member], number: int, proc: str = "/proc", sys: str = "/sys"
) -> LookResult:
    """Read the ports of the first rank's network namespace; state only where it is ours."""
    pid = next(
        (member.pid for member in members if member.role == "rank"),
        members[0].pid if members else 0,
    )
    net = f"{proc}/{pid}/net"
    ports = _infiniband(f"{sys}/class/infiniband")
    own = procfs.link(f"{proc}/{pid}/ns/net") == procfs.link(f"{proc}/self/ns/net")
    ports += _interfaces(procfs.read_or_none(f"{net}/dev") or "", f"{sys}/class/net" if own else "")
    tcp = parse_tcp(*(procfs.read_or_none(f"{net}/{name}") or "" for name in ("snmp", "netstat")))
    if tcp:
        ports.append({"port": "tcp", "kind": "tcp", "state": "", "counters": tcp, "errors": {}})
    if not ports:
        reason = f"neither {sys}/class/infiniband nor {net} can be read"
        return refused("unavailable", reason, look=number, ports=[])
    return LookResult({"look": number, "ports": ports[:PORTS_CAP]})


def parse_tcp(snmp: str, netstat: str) -> Dict[str, int]:
    """The host's TCP counters of loss: lines of names, then of numbers (proc_pid_net(5))."""
    found: Dict[str, int] = {}
    for text, head in ((snmp, "Tcp:"), (netstat, "TcpExt:")):
        lines = [line.split() for line in text.splitlines() if line.startswith(head)]
        if len(lines) == 2:
            pairs = (pair for pair in zip(*lines) if pair[1].lstrip("-").isdecimal())
            found.update({name: int(value) for name, value in pairs})
    return {name: found[name] for name in TCP.split() if name in found}


def parse_interfaces(text: str) -> Dict[str, Dict[str, int]]:
    """/proc/net/dev: eight numbers received, eight sent (bytes packets errs drop fifo frame
    compressed multicast / … fifo colls carrier compressed).
    """
    found: Dict[str, Dict[str, int]] = {}
    for line in text.splitlines()[2:]:
        name, colon, rest = line.partition(":")
        numbers = [int(word) for word in rest.split() if word.isdecimal()]
        if colon and len(numbers) >= 16:
            columns = {**INTERFACE_COUNTERS, **INTERFACE_ERRORS}
            found[name.strip()] = {counter: numbers[place] for counter, place in columns.items()}
    return found


def _interfaces(text: str, folder: str) -> List[Dict[str, Any]]:
    ports = []
    for name, counters in parse_interfaces(text).items():
        if name == "lo":
            continue
        errors = {key: counters.pop(key) for key in INTERFACE_ERRORS}
        port: Dict[str, Any] = {
            "port": name,
            "kind": "ethernet",
            "state": "",
            "counters": counters,
            "errors": errors,
        }
        if folder:
            port["state"] = _word(f"{folder}/{name}/operstate")
            port["speed_mbit"] = _count(f"{folder}/{name}/speed")
            changes = _count(f"{folder}/{name}/carrier_changes")
            if changes is not None:
                errors["carrier_changes"] = changes
        ports.append(port)
    return ports


def _infiniband(folder: str) -> List[Dict[str, Any]]:
    ports = []
    for device in _names(folder):
        driver = os.path.basename(procfs.link(f"{folder}/{device}/device/driver"))
        for number in _names(f"{folder}/{device}/ports"):
            place = f"{folder}/{device}/ports/{number}"
            read = {
                name: _count(f"{place}/{part}/{name}")
                for part in ("counters", "hw_counters")
                for name in _names(f"{place}/{part}")
            }
            known = {name: value for name, value in read.items() if value is not None}
            counters = {name: known[name] for name in WAITS.split() if name in known}
            for name, (our_name, unit_bytes) in DATA_COUNTERS.items():
                if name in known:
                    counters[our_name] = known[name] * unit_bytes
            ports.append(
                {
                    "port": f"{device}/{number}",
                    "kind": "efa" if driver == "efa" else "infiniband",
                    "state": _state(f"{place}/state"),
                    "physical_state": _state(f"{place}/phys_state"),
                    "rate": _word(f"{place}/rate"),
                    "link_layer": _word(f"{place}/link_layer"),
                    "counters": counters,
                    "errors": {name: known[name] for name in ERRORS.split() if name in known},
                }
            )
    return ports


def _state(path: str) -> str:
    """`4: ACTIVE` is ACTIVE."""
    return _word(path).rpartition(":")[2].strip()


def _word(path: str) -> str:
    return (procfs.read_page(path) or "").strip()[:100]


def _count(path: str) -> Optional[int]:
    return procfs.number(_word(path))


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))[:PORTS_CAP]
    except OSError:
        return []


def parse_ports(record: Evidence) -> List[Fact]:
    look = fields.whole(record.data, "look") or 1

    def port(row: Mapping[str, Any]) -> Fact:
        return PortLook(
            (record.id,),
            record.cell,
            port=fields.text(row, "port"),
            kind=fields.text(row, "kind"),
            state=fields.text(row, "state"),
            look=look,
            at=record.began,
            counters=_counts(row, "counters"),
            totals=_counts(row, "errors"),
        )

    return fields.each(fields.items(record.data, "ports"), port)


def join_ports(facts: List[Fact]) -> List[Fact]:
    """One per cell, host and port: the last look, with what the counters rose since the first."""
    by_port: Dict[Tuple[str, str, str], List[PortLook]] = {}
    for fact in facts:
        if isinstance(fact, PortLook):
            by_port.setdefault((fact.cell, fact.host, fact.port), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, PortLook)] + [
        _joined(sorted(looks, key=lambda look: look.look)) for looks in by_port.values()
    ]


def _joined(looks: List[PortLook]) -> PortCounters:
    first, last = looks[0], looks[-1]
    values: Dict[str, Any] = {
        each.name: getattr(last, each.name) for each in fields_of(PortCounters)
    }
    values["evidence"] = tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence))
    values["totals"] = {name: count for name, count in last.totals.items() if count}
    if len(looks) > 1:
        rises = _rises(first.counters, last.counters)
        values.update({our_name: rises[name] for name, our_name in BYTES.items() if name in rises})
        errors = _rises(first.totals, last.totals)
        waits = {name: rise for name, rise in rises.items() if name not in BYTES and rise}
        values["waits"] = {name: rise for name, rise in waits.items() if name != "OutSegs"}
        values["errors"] = {name: rise for name, rise in errors.items() if rise}
        values["looked_s"] = round(last.at - first.at, 3) if last.at > first.at > 0 else None
    return PortCounters(**values)


def _rises(before: Mapping[str, int], after: Mapping[str, int]) -> Dict[str, int]:
    """How much each counter rose; one that fell was reset, and counts from 0."""
    return {
        name: value - before[name] if value >= before[name] else value
        for name, value in after.items()
        if name in before
    }


def _counts(row: Mapping[str, Any], name: str) -> Dict[str, int]:
    data = fields.part(row, name)
    return {str(key): count for key in data if (count := fields.whole(data, key)) is not None}


COLLECTOR = Collector(
    "ports",
    lambda job, _: read_ports(job.members, job.round),
    deadline_s=1.0,
    source="/sys/class, /proc/PID/net",
    rounds=("first", "second"),
    parse=parse_ports,
    join=join_ports,
    facts=(PortCounters,),
)
