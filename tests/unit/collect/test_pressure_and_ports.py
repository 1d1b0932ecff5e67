"""Pressure and ports: the kernel's files as text, and this machine's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import ports, pressure
from trainprobe.collect.collectors.ports import (
    parse_interfaces,
    parse_tcp,
    read_ports,
)
from trainprobe.collect.collectors.pressure import read_pressure
from trainprobe.collect.members import Member
from trainprobe.facts import PortCounters, Pressure, read

Start = Callable[..., "subprocess.Popen[bytes]"]

SPINNERS = """
import threading
print("ready", flush=True)
while True:
    pass
"""
SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs OutRsts
Tcp: 1 -1 9003 7096803 7067396 3557 0 1368
"""
NETSTAT = """\
TcpExt: SyncookiesSent TCPTimeouts ListenOverflows
TcpExt: 0 12 3
"""
DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0
  eth0: 2491784562 200 1 2 0 4 0 0 4769345 60 5 6 0 0 7 0
nonsense
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_tcp_and_interfaces_from_text() -> None:
    assert parse_tcp(SNMP, NETSTAT) == {
        "RetransSegs": 3557,
        "OutSegs": 7067396,
        "InErrs": 0,
        "TCPTimeouts": 12,
        "ListenOverflows": 3,
    }
    assert parse_tcp("", "Tcp: x") == {}
    assert parse_interfaces(DEV)["eth0"] == {
        "received_bytes": 2491784562,
        "sent_bytes": 4769345,
        "rx_dropped": 2,
        "tx_dropped": 6,
        "rx_errors": 1,
        "rx_frame": 4,
        "tx_errors": 5,
        "tx_carrier": 7,
    }


def test_infiniband_and_efa_ports(tmp_path: Path) -> None:
    mlx, efa = "sys/class/infiniband/mlx5_0/ports/1", "sys/class/infiniband/rdmap0s6/ports/1"
    write(
        tmp_path,
        {
            f"{mlx}/state": "1: DOWN",
            f"{mlx}/phys_state": "3: Disabled",
            f"{mlx}/rate": "400 Gb/sec (4X NDR)",
            f"{mlx}/link_layer": "InfiniBand",
        },
    )
    write(
        tmp_path,
        {
            f"{mlx}/counters/port_xmit_data": "250",
            f"{mlx}/counters/port_rcv_data": "1",
            f"{mlx}/counters/link_downed": "2",
        },
    )
    write(
        tmp_path,
        {
            f"{mlx}/counters/port_rcv_errors": "N/A",
            f"{mlx}/hw_counters/out_of_sequence": "11",
            f"{mlx}/counters/VL15_dropped": "0",
        },
    )
    write(
        tmp_path,
        {
            f"{efa}/state": "4: ACTIVE",
            f"{efa}/hw_counters/tx_bytes": "77",
            f"{efa}/hw_counters/rx_drops": "5",
        },
    )
    (tmp_path / "sys/class/infiniband/rdmap0s6/device").mkdir()
    (tmp_path / "sys/class/infiniband/rdmap0s6/device/driver").symlink_to(
        "../../bus/pci/drivers/efa"
    )
    write(
        tmp_path,
        {
            "proc/70/net/dev": DEV,
            "proc/70/net/snmp": SNMP,
            "sys/class/net/eth0/operstate": "up",
            "sys/class/net/eth0/carrier_changes": "2",
        },
    )
    seen = read_ports(
        [Member(None, 69, "launcher"), Member(0, 70)],
        1,
        str(tmp_path / "proc"),
        str(tmp_path / "sys"),
    )
    ports = {port["port"]: port for port in seen.data["ports"]}
    assert set(ports) == {"mlx5_0/1", "rdmap0s6/1", "eth0", "tcp"}
    down = ports["mlx5_0/1"]
    assert (down["kind"], down["state"], down["physical_state"], down["rate"]) == (
        "infiniband",
        "DOWN",
        "Disabled",
        "400 Gb/sec (4X NDR)",
    )
    assert down["counters"] == {"out_of_sequence": 11, "sent_bytes": 1000, "received_bytes": 4}
    assert down["errors"] == {"link_downed": 2, "VL15_dropped": 0}
    assert (
        ports["rdmap0s6/1"]["kind"],
        ports["rdmap0s6/1"]["counters"],
        ports["rdmap0s6/1"]["errors"],
    ) == ("efa", {"sent_bytes": 77}, {"rx_drops": 5})
    assert (
        ports["eth0"]["state"],
        ports["eth0"]["errors"]["carrier_changes"],
        ports["eth0"]["errors"]["tx_carrier"],
    ) == ("up", 2, 7)


def test_nothing_to_read_is_said_so(tmp_path: Path) -> None:
    assert read_ports([], 1, str(tmp_path), str(tmp_path)).outcome == "unavailable"
    assert read_pressure([], 1, str(tmp_path)).outcome == "unavailable"


def test_throttling_in_both_versions() -> None:
    assert pressure.parse_cpu_stat(
        "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n", 1
    ) == {"periods": 10, "throttled": 4, "throttled_s": 2.5}
    assert pressure.parse_cpu_stat(
        "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n", 2
    ) == {
        "periods": 10,
        "throttled": 4,
        "throttled_s": 2.5,
    }
    assert pressure.parse_cpu_stat("usage_usec 9\n", 2) is None


def test_this_machine_twice(case: Case, start: Start) -> None:
    child = start(SPINNERS)
    member = Member(0, child.pid)
    records = [
        record
        for number in (1, 2)
        for collector in (pressure.COLLECTOR, ports.COLLECTOR)
        for record in collect(case, collector, JobView([member], round=number))
    ]
    assert [record.outcome for record in records] == ["ok"] * 4
    facts = read(records)
    host = next(one for one in facts.of(Pressure) if one.scope == "host")
    assert host.runnable == 1
    assert 0 < (host.usable_cpus or 0) <= len(os.sched_getaffinity(0))
    assert host.load is not None
    assert host.looked_s is not None
    tcp = next(one for one in facts.of(PortCounters) if one.port == "tcp")
    assert tcp.retransmits is not None
    assert tcp.retransmits >= 0
