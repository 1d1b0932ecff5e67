"""What makes one healthy node unlike the others and must exclude nobody: sizes, names, load, and
what is only worth a notice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.hosts import Host
from tests.gallery.nodes import links, machine
from tests.gallery.nodes.stand import Stand

BUSY = (
    "import time\nuntil = time.monotonic() + 120\nwhile time.monotonic() < until:\n   "
    " sum(range(20000))\n    time.sleep(0.002)\n"
)
LONGER_THAN_A_RUN = "777.25"


@dataclass(frozen=True)
class Decoy:
    name: str
    plant: Callable[[Stand, Host], AbstractContextManager[None]]


def _more_memory(stand: Stand, host: Host) -> AbstractContextManager[None]:
    """Twice as much of everything."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    doubled = re.sub(
        r"^((?:Mem|Swap)\w+:\s+)(\d+)",
        lambda found: f"{found[1]}{2 * int(found[2])}",
        text,
        flags=re.MULTILINE,
    )
    return machine.over(host, Path("/proc/meminfo"), doubled, stand.folder)


def _command_line(stand: Stand, host: Host) -> AbstractContextManager[None]:
    text = Path("/proc/cmdline").read_text(encoding="ascii").rstrip("\n")
    return machine.over(
        host, Path("/proc/cmdline"), f"{text} crashkernel=auto quiet\n", stand.folder
    )


@contextmanager
def _whole_name(stand: Stand, host: Host) -> Iterator[None]:
    """It calls itself by its name with the domain, as some distributions do."""
    with _domain(stand, host):
        machine.done(host, "hostname", f"{host.name}.cluster.local")
        try:
            yield
        finally:
            host.run("hostname", host.name)


def _domain(stand: Stand, host: Host) -> AbstractContextManager[None]:
    """Its table of names has the domains as well."""
    rows = "".join(f"{one.address} {one.name}.cluster.local {one.name}\n" for one in stand.hosts)
    return machine.names(
        stand,
        host,
        f"127.0.0.1 localhost localhost.localdomain\n::1 localhost ip6-localhost\n{rows}",
    )


@contextmanager
def _busy(_stand: Stand, host: Host) -> Iterator[None]:
    """A neighbour that computes, at the lowest priority."""
    child = host.start("nice", "-n", "19", sys.executable, "-c", BUSY, log="busy.out")
    try:
        yield
    finally:
        _ended(host, child.pid, b"sum(range")


@contextmanager
def _other_jobs_process(_stand: Stand, host: Host) -> Iterator[None]:
    """A process of another kind that has run for long."""
    child = host.start("sleep", LONGER_THAN_A_RUN, log="sleep.out")
    try:
        yield
    finally:
        _ended(host, child.pid, LONGER_THAN_A_RUN.encode())


def _ended(host: Host, entered: int, mark: bytes) -> None:
    for pid in host.pids():
        try:
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes():
                machine.kill(pid)
        except OSError:  # it has ended by itself
            continue
    child = next(one for one in host.services if one.pid == entered)
    child.kill()
    child.wait(10)
    host.services.remove(child)


def _profile(**variables: str) -> Callable[[Stand, Host], AbstractContextManager[None]]:
    return lambda stand, host: machine.exported(stand, host, **variables)


def _shm(size: str) -> Callable[[Stand, Host], AbstractContextManager[None]]:
    return lambda _stand, host: machine.shared_memory(host, size)


@contextmanager
def _more_mounts(stand: Stand, host: Host) -> Iterator[None]:
    """A scratch disk of its own that nobody asked for."""
    place = stand.folder / "local-disk"
    place.mkdir(exist_ok=True)
    machine.done(host, "mount", "-t", "tmpfs", "local-disk", str(place))
    try:
        yield
    finally:
        host.run("umount", "--lazy", str(place))


def _spare_card(_stand: Stand, host: Host) -> AbstractContextManager[None]:
    return links.second_card(host, "mgmt0", f"10.98.{host.number}.1/24")


def _spare_ports_closed(_stand: Stand, host: Host) -> AbstractContextManager[None]:
    """A firewall that lets in all but a few services that no training uses."""
    return links.rule(host, "ct state new tcp dport { 25, 111, 631 } drop")


def _two_milliseconds(_stand: Stand, host: Host) -> AbstractContextManager[None]:
    """A cable through a slower machine: a millisecond each way, and fewer bytes a second."""
    return links.slow_cable(host, 1)


DECOYS = (
    Decoy("more memory", _more_memory),
    Decoy("another kernel command line", _command_line),
    Decoy("hostname with a domain", _whole_name),
    Decoy("names with domains", _domain),
    Decoy("a busy neighbour", _busy),
    Decoy("a process of somebody else", _other_jobs_process),
    Decoy(
        "another pager and modules",
        _profile(PAGER="less", LOADEDMODULES="gcc/12:cuda/12.4", MANPATH="/opt/man"),
    ),
    Decoy("more /dev/shm", _shm("2g")),
    Decoy("less /dev/shm, and enough", _shm("768m")),
    Decoy("a disk of its own", _more_mounts),
    Decoy("a second network card", _spare_card),
    Decoy("a firewall for other services", _spare_ports_closed),
    Decoy("a millisecond more", _two_milliseconds),
    Decoy("clock 50 ms ahead", lambda stand, host: machine.wrong_clock(stand, host, 50)),
)
