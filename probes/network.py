# /// trainprobe
# rung: 15
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Will the libraries choose a network over which other nodes can reach this host?
# scope: host
# needs: []
# timeout_s: 25
# climbs: []
# after: []
# means: Because of this host's name, interface or adapter, ranks on other nodes cannot reach
#   it, or reach it slowly.
# ///
"""Read names, interfaces and adapters, and bind a few ports. Nothing is sent to another node but
what the name server is asked; standard library only.

Flags and environment: see `_shared/checks.py`; NCCL_ and GLOO_SOCKET_IFNAME, NCCL_IB_HCA. Events:
checks, and `value` for what nodes should share.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _network import interfaces, name_checks, rdma
from _shared import checks, kernel_files

LEAST_PORTS = 4096
ERRORS = ("rx_errors", "tx_errors", "rx_dropped", "rx_crc_errors", "rx_missed_errors")


def mtu(launch: checks.Launch, results: checks.Results) -> None:
    taken, _ = interfaces.nccl(interfaces.interfaces(), dict(os.environ))
    sizes = {
        item.name: kernel_files.number(launch.root, f"/sys/class/net/{item.name}/mtu") or 0
        for item in taken
    }
    small = [
        f"{name} has {size}"
        for name, size in sizes.items()
        if 0 < size < results.threshold("net.mtu", 1280)
    ]
    sentence = (
        "; ".join(small)
        or ", ".join(f"{name} {size}" for name, size in sizes.items())
        or "no interface"
    )
    fix = "sudo ip link set dev NAME mtu 1500, or what the other nodes have"
    results.add(
        "net.mtu", "warn" if small else "ok", f"MTU: {sentence}.", sizes, fix=fix, threshold=1280
    )


def ports(launch: checks.Launch, results: checks.Results) -> None:
    """The ephemeral ports, where NCCL and gloo listen, must be many and reachable."""
    low, high = [
        int(word)
        for word in (
            kernel_files.line(launch.root, "/proc/sys/net/ipv4/ip_local_port_range")
            or "32768 60999"
        ).split()[:2]
    ]
    reserved = kernel_files.line(launch.root, "/proc/sys/net/ipv4/ip_local_reserved_ports")
    least = results.threshold("net.ports", LEAST_PORTS)
    taken, _ = interfaces.nccl(interfaces.interfaces(), dict(os.environ))
    closed = [
        f"{item.address} ({item.name}): {why}"
        for item in taken[:4]
        if ":" not in item.address
        for why in [_reached(item.address)]
        if why
    ]
    few = [f"only {high - low + 1} ports from {low} to {high}"] if high - low + 1 < least else []
    sentence = (
        "; ".join(closed + few) or f"{low} to {high}, and a connection to our own address works"
    )
    fix = (
        "open the range 32768-60999 between the nodes (nft list ruleset); sudo sysctl"
        " net.ipv4.ip_local_port_range='32768 60999'"
    )
    results.add(
        "net.ports",
        "fail" if closed else "warn" if few else "ok",
        f"Ephemeral ports: {sentence}.",
        [low, high, reserved],
        fix=fix,
        threshold=least,
    )
    checks.value("net.port_range", f"{low} {high}")


def _reached(address: str) -> str:
    """Why a connection to a port of our own fails; "" where it does not."""
    with (
        contextlib.closing(socket.socket()) as listener,
        contextlib.closing(socket.socket()) as caller,
    ):
        caller.settimeout(2.0)
        try:
            listener.bind((address, 0))
            listener.listen(1)
            caller.connect(listener.getsockname())
        except OSError as error:
            return error.strerror or str(error)
    return ""


def errors(launch: checks.Launch, results: checks.Results) -> None:
    """Counters of the interface since it came up; a share of packets, since a few are normal."""
    taken, _ = interfaces.nccl(interfaces.interfaces(), dict(os.environ))
    most, bad, found = results.threshold("net.errors", 0.001), [], {}
    for item in taken[:8]:
        count = {
            name: kernel_files.number(launch.root, f"/sys/class/net/{item.name}/statistics/{name}")
            or 0
            for name in (*ERRORS, "rx_packets", "tx_packets")
        }
        packets = max(1, count["rx_packets"] + count["tx_packets"])
        wrong = count["rx_errors"] + count["tx_errors"]
        found[item.name] = count
        bad += (
            [f"{item.name}: {wrong} errors in {packets} packets"]
            if wrong / packets > most and wrong > 100
            else []
        )
    sentence = f"Interface errors: {'; '.join(bad) or 'none that matters'}."
    fix = "ethtool -S NAME; look at cable and switch port"
    results.add("net.errors", "warn" if bad else "ok", sentence, found, fix=fix, threshold=most)


CHECKS = (
    checks.Check(("host.dns",), name_checks.dns),
    checks.Check(("net.if",), name_checks.takes),
    checks.Check(("net.ifname",), name_checks.named),
    checks.Check(("net.mtu",), mtu),
    checks.Check(("net.ports",), ports),
    checks.Check(("net.errors",), errors, checks.ADMIN),
    checks.Check(("ib.state",), rdma.state, checks.ADMIN),
    checks.Check(("ib.gid",), rdma.gid, checks.ADMIN),
    checks.Check(("ib.flap",), rdma.flaps, checks.ADMIN),
)

if __name__ == "__main__":
    checks.run(
        CHECKS,
        __doc__ or "",
        "Other nodes can reach this host over the interfaces that the libraries use.",
    )
