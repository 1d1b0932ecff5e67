"""Faults of the network of one host or of one link: nftables rules inside the host's namespace,
and a slow cable.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import hosts as made_hosts
from tests.cluster.hosts import Host

TABLE = "planted"


@contextlib.contextmanager
def rule(host: Host, text: str, hook: str = "input") -> Iterator[None]:
    """Let this rule of nftables hold for what comes in (or goes out: `output`) over the host's
    cable.
    """
    interface = "iifname" if hook == "input" else "oifname"
    table = (
        f"table inet {TABLE} {{\n chain faults {{\n type filter hook {hook} priority 0\n"
        f' {interface} "lo" accept\n {text}\n }}\n}}\n'
    )
    subprocess.run(
        host.argv("nft", "-f", "-"),
        input=table,
        text=True,
        check=True,
        capture_output=True,
        timeout=20,
    )
    try:
        yield
    finally:
        host.run("nft", "delete", "table", "inet", TABLE)


@contextlib.contextmanager
def slow_cable(host: Host, milliseconds: float) -> Iterator[None]:
    """Replace the host's cable by one on which every frame takes so long, each way. Its address
    and its card's number stay.
    """
    card = Path("/sys/class/net/eth0/address")
    mac = host.run("cat", str(card)).stdout.strip()
    if not mac:  # /sys is mounted in the host's own namespace
        raise RuntimeError(f"{host.name} has no eth0")
    _ip("link", "del", host.outer)
    inner = f"i{host.outer}"
    control = host.folder / "slow"
    control.write_text(f"{milliseconds:g}", encoding="ascii")
    relay = subprocess.Popen(
        [sys.executable, str(made_hosts.RELAY), host.outer, inner, str(control)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert relay.stdout is not None
        with relay.stdout as said:
            if said.readline() != b"ready\n":
                raise RuntimeError(f"the slow cable of {host.name} did not start")
        _ip("link", "set", inner, "netns", _space(host), "name", "eth0")
        _plugged(host, mac)
        yield
    finally:
        relay.kill()
        relay.wait(10)
        _ip(
            "link", "add", host.outer, "type", "veth", "peer", "name", "eth0", "netns", _space(host)
        )
        _plugged(host, mac)


def _plugged(host: Host, mac: str) -> None:
    _ip("link", "set", host.outer, "master", host.bridge.name, "up")
    for words in (
        ("link", "set", "eth0", "address", mac),  # the others still know it by that
        ("addr", "add", f"{host.address}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", host.bridge.address),
    ):
        _ip("-n", _space(host), *words)


def _space(host: Host) -> str:
    return f"tp{host.bridge.lane}n{host.number}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


@contextlib.contextmanager
def second_card(host: Host, name: str, address: str) -> Iterator[None]:
    """Give the host one more interface, with an address that leads nowhere."""
    _ip("-n", _space(host), "link", "add", name, "type", "veth", "peer", "name", f"{name}x")
    try:
        for words in (
            ("addr", "add", address, "dev", name),
            ("link", "set", name, "up"),
            ("link", "set", f"{name}x", "up"),
        ):
            _ip("-n", _space(host), *words)
        yield
    finally:
        _ip("-n", _space(host), "link", "del", name)


@contextlib.contextmanager
def unplugged(host: Host) -> Iterator[None]:
    host.cut()
    try:
        yield
    finally:
        host.healed()
