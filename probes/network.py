# /// trainprobe
# rung: 15
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Will the libraries take a network over which other nodes reach this host?
# scope: host
# needs: []
# timeout_s: 25
# climbs: []
# after: []
# means: This host's name, interface or adapter is such that ranks on other nodes do not reach it, or reach it slowly.
# ///
"""Read names, interfaces and adapters, and bind a few ports. Nothing is sent to another node but what the name server is asked; standard library only.

Flags and environment: see _ready/checking.py; NCCL_ and GLOO_SOCKET_IFNAME, NCCL_IB_HCA. Events: checks, and `value` for what nodes should share.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _network import chosen, interfaces, rdma  # isort: skip  # before _ready, which takes this folder off the path
from _ready import checking, places  # isort: skip

LEAST_PORTS = 4096
JUMBO = 9000
ERRORS = ("rx_errors", "tx_errors", "rx_dropped", "rx_crc_errors", "rx_missed_errors")


def mtu(asked: checking.Asked, told: checking.Told) -> None:
    taken, _ = interfaces.nccl(interfaces.interfaces(), dict(os.environ))
    sizes = {one.name: places.number(asked.root, f"/sys/class/net/{one.name}/mtu") or 0 for one in taken}
    small = [f"{name} has {size}" for name, size in sizes.items() if 0 < size < told.threshold("net.mtu", 1280)]
    says = "; ".join(small) or ", ".join(f"{name} {size}" for name, size in sizes.items()) or "no interface"
    told.say(
        "net.mtu", "warn" if small else "ok", f"MTU: {says}.", sizes, fix="sudo ip link set dev NAME mtu 1500, or what the other nodes have", threshold=1280
    )


def ports(asked: checking.Asked, told: checking.Told) -> None:
    """NCCL and gloo listen on ports of the ephemeral range: it must be large enough, and a port of it reachable at our own address."""
    low, high = [int(word) for word in (places.line(asked.root, "/proc/sys/net/ipv4/ip_local_port_range") or "32768 60999").split()[:2]]
    reserved = places.line(asked.root, "/proc/sys/net/ipv4/ip_local_reserved_ports")
    least = told.threshold("net.ports", LEAST_PORTS)
    taken, _ = interfaces.nccl(interfaces.interfaces(), dict(os.environ))
    closed = [f"{one.address} ({one.name}): {why}" for one in taken[:4] if ":" not in one.address for why in [_reached(one.address)] if why]
    few = [f"only {high - low + 1} ports from {low} to {high}"] if high - low + 1 < least else []
    says = "; ".join(closed + few) or f"{low} to {high}, and a connection to our own address works"
    fix = "open the range 32768-60999 between the nodes (nft list ruleset); sudo sysctl net.ipv4.ip_local_port_range='32768 60999'"
    told.say("net.ports", "fail" if closed else "warn" if few else "ok", f"Ephemeral ports: {says}.", [low, high, reserved], fix=fix, threshold=least)
    checking.value("net.port_range", f"{low} {high}")


def _reached(address: str) -> str:
    """Why a connection to a port of our own fails; "" where it does not."""
    with contextlib.closing(socket.socket()) as listener, contextlib.closing(socket.socket()) as caller:
        caller.settimeout(2.0)
        try:
            listener.bind((address, 0))
            listener.listen(1)
            caller.connect(listener.getsockname())
        except OSError as error:
            return error.strerror or str(error)
    return ""


def errors(asked: checking.Asked, told: checking.Told) -> None:
    """Counters of the interface since it came up; a share of packets, since a few are normal."""
    taken, _ = interfaces.nccl(interfaces.interfaces(), dict(os.environ))
    most, bad, found = told.threshold("net.errors", 0.001), [], {}
    for one in taken[:8]:
        count = {name: places.number(asked.root, f"/sys/class/net/{one.name}/statistics/{name}") or 0 for name in (*ERRORS, "rx_packets", "tx_packets")}
        packets = max(1, count["rx_packets"] + count["tx_packets"])
        wrong = count["rx_errors"] + count["tx_errors"]
        found[one.name] = count
        bad += [f"{one.name}: {wrong} errors in {packets} packets"] if wrong / packets > most and wrong > 100 else []
    told.say(
        "net.errors",
        "warn" if bad else "ok",
        f"Errors of interfaces: {'; '.join(bad) or 'none worth a word'}.",
        found,
        fix="ethtool -S NAME; look at cable and switch port",
        threshold=most,
    )


CHECKS = (
    checking.Check(("host.dns",), chosen.dns),
    checking.Check(("net.if",), chosen.takes),
    checking.Check(("net.ifname",), chosen.named),
    checking.Check(("net.mtu",), mtu),
    checking.Check(("net.ports",), ports),
    checking.Check(("net.errors",), errors, checking.ADMIN),
    checking.Check(("ib.state",), rdma.state, checking.ADMIN),
    checking.Check(("ib.gid",), rdma.gid, checking.ADMIN),
    checking.Check(("ib.flap",), rdma.flaps, checking.ADMIN),
)

if __name__ == "__main__":
    checking.make(CHECKS, __doc__ or "", "Other nodes can reach this host by what the libraries will take.")
