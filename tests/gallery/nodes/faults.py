"""What is planted: each fault with its variants, the causes that are right for it, and where it
lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

from tests.cluster.hosts import Host
from tests.gallery.nodes import links, machine
from tests.gallery.nodes.stand import Stand

Plant = Callable[[Stand, Host, Host], AbstractContextManager[None]]
Where = Literal["node", "link", "everywhere"]
# What the batch system and ssh need goes on: else nobody could ask the node, and it would be one
# that does not answer.
CONTROL = "{ 22, 17802 }"


@dataclass(frozen=True)
class Fault:
    """`plant(stand, host, other)` makes it on `host`; of a link `other` is the far end, and
    `everywhere` it is planted on every host.

    `causes` may stand first, `exits` are the exit codes that are right. `cuts` is for what lies
    between nodes: where `ready` itself runs on one of them, it is planted on others. `outside` runs
    only from a machine that is none of the nodes.
    """

    kind: str
    variant: str
    causes: tuple[str, ...]
    plant: Plant
    where: Where = "node"
    exits: tuple[int, ...] = (10,)
    cuts: bool = False
    outside: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.variant}"


def _one_way(stand: Stand, host: Host, other: Host) -> AbstractContextManager[None]:
    """What `other` sends does not come in; what `host` sends to it goes out."""
    del stand
    return links.rule(
        host,
        f"ip saddr {other.address} tcp dport {CONTROL} accept\n ip saddr {other.address} tcp sport"
        f" {CONTROL} accept\n ip saddr {other.address} drop",
    )


def _deaf_to_nodes(stand: Stand, host: Host, other: Host) -> AbstractContextManager[None]:
    """Nothing comes in from any other node, all from the machine that asks."""
    del other
    others = ", ".join(one.address for one in stand.hosts if one is not host)
    return links.rule(host, f"ip saddr {{ {others} }} drop")


def _firewall(ports: str, how: str = "drop") -> Plant:
    """As a host's firewall does it: new connections to these ports are not let in."""
    return lambda _stand, host, _other: links.rule(
        host, f"ct state new tcp dport != {CONTROL} tcp dport {ports} {how}"
    )


def _loss(percent: int, hook: str = "input") -> Plant:
    return lambda _stand, host, _other: links.rule(
        host, f"numgen random mod 100 < {percent} drop", hook
    )


def _large_packets_lost(stand: Stand, host: Host, _other: Host) -> AbstractContextManager[None]:
    """As where a switch between the nodes takes smaller frames than the card says: what is small
    passes, the data does not.
    """
    others = ", ".join(one.address for one in stand.hosts if one is not host)
    return links.rule(host, f"ip saddr {{ {others} }} meta length > 1000 drop")


def _slow(milliseconds: float) -> Plant:
    return lambda _stand, host, _other: links.slow_cable(host, milliseconds)


def _variables(**variables: str) -> Plant:
    return lambda stand, host, _other: machine.exported(stand, host, **variables)


@contextmanager
def _leads_nowhere(stand: Stand, host: Host, _other: Host) -> Iterator[None]:
    """The interface is there, is up and has an address; the other nodes are not behind it."""
    with (
        links.second_card(host, "back0", f"10.99.{host.number}.1/24"),
        machine.exported(stand, host, GLOO_SOCKET_IFNAME="back0", NCCL_SOCKET_IFNAME="back0"),
    ):
        yield


def _limit(*limits: str) -> Plant:
    return lambda stand, host, _other: machine.limit(stand, host, *limits)


def _shm(size: str) -> Plant:
    return lambda _stand, host, _other: machine.shared_memory(host, size)


def _version(package: str, version: str) -> Plant:
    return lambda stand, host, _other: machine.another_version(stand, host, package, version)


def _clock(seconds: int) -> Plant:
    return lambda stand, host, _other: machine.wrong_clock(stand, host, 1000 * seconds)


def _quota(share: float) -> Plant:
    return lambda _stand, host, _other: machine.quota(host, share)


def _hung(how: str) -> Plant:
    return lambda stand, host, _other: machine.hung_mount(stand, host, how)


def _own_name(address: str) -> Plant:
    return lambda stand, host, _other: machine.names(
        stand, host, machine.table_of_names(stand, **{host.name: address})
    )


def _name_of_another(address: str) -> Plant:
    """The name of another node leads astray here."""
    return lambda stand, host, other: machine.names(
        stand, host, machine.table_of_names(stand, **{other.name: address})
    )


def _full_disk(stand: Stand, host: Host, _other: Host) -> AbstractContextManager[None]:
    return machine.full_disk(host, stand.scratch, "2m")


USERS = (1, 10)
"""What the user can mend alone, on some nodes only: the report may send the job elsewhere or ask
for the change.
"""
WAY, WORSE = ("firewall-or-route", "network-fault"), ("link-degraded", "network-fault")
# The fourteen kinds that were promised, each in several variants.
PROMISED = (
    Fault("one-way", "link", WAY, _one_way, where="link", cuts=True),
    Fault("one-way", "node", WAY, _deaf_to_nodes, cuts=True, outside=True),
    Fault("blocked-ports", "ephemeral, dropped", WAY, _firewall("20000-65535"), cuts=True),
    Fault("blocked-ports", "all unprivileged, dropped", WAY, _firewall("1024-65535"), cuts=True),
    Fault(
        "blocked-ports",
        "ephemeral, refused",
        WAY,
        _firewall("20000-65535", "reject with tcp reset"),
        cuts=True,
    ),
    Fault("blocked-ports", "upper half, dropped", WAY, _firewall("32768-65535"), cuts=True),
    Fault(
        "wrong-interface",
        "gloo, no such",
        ("wrong-network-interface",),
        _variables(GLOO_SOCKET_IFNAME="ib0"),
        exits=USERS,
    ),
    Fault(
        "wrong-interface",
        "nccl, no such",
        ("wrong-network-interface",),
        _variables(NCCL_SOCKET_IFNAME="ens5"),
        exits=USERS,
    ),
    Fault(
        "wrong-interface",
        "gloo, loopback",
        ("wrong-network-interface",),
        _variables(GLOO_SOCKET_IFNAME="lo"),
        exits=USERS,
    ),
    Fault(
        "wrong-interface",
        "both, leads nowhere",
        ("wrong-network-interface",),
        _leads_nowhere,
        exits=USERS,
    ),
    Fault(
        "wrong-interface",
        "gloo, no such, everywhere",
        ("wrong-network-interface",),
        _variables(GLOO_SOCKET_IFNAME="ib0"),
        "everywhere",
        (1,),
    ),
    Fault("delay", "200 ms", WORSE, _slow(100), cuts=True),
    Fault("delay", "200 ms each way", WORSE, _slow(200), cuts=True),
    Fault("loss", "1 % in", WORSE, _loss(1), cuts=True),
    Fault("loss", "1 % out", WORSE, _loss(1, "output"), cuts=True),
    Fault("loss", "3 % in", WORSE, _loss(3), cuts=True),
    Fault("shm", "64 MiB", ("shm-exhausted",), _shm("64m")),
    Fault("shm", "8 MiB", ("shm-exhausted",), _shm("8m")),
    Fault("shm", "1 MiB", ("shm-exhausted",), _shm("1m")),
    Fault("shm", "8 MiB, everywhere", ("shm-exhausted",), _shm("8m"), "everywhere", (1,)),
    Fault("nofile", "256", ("fd-exhaustion",), _limit("--nofile=256:256"), exits=USERS),
    Fault("nofile", "64", ("fd-exhaustion",), _limit("--nofile=64:64"), exits=USERS),
    Fault("nofile", "128", ("fd-exhaustion",), _limit("--nofile=128:128"), exits=USERS),
    Fault(
        "nofile",
        "256, everywhere",
        ("fd-exhaustion",),
        _limit("--nofile=256:256"),
        "everywhere",
        (1,),
    ),
    Fault("memlock", "64 kB", ("memlock-limit",), _limit("--memlock=65536:65536"), exits=USERS),
    Fault("memlock", "1 MB", ("memlock-limit",), _limit("--memlock=1048576:1048576"), exits=USERS),
    Fault(
        "version",
        "torch older",
        ("environment-differs", "library-version-conflict"),
        _version("torch", "2.9.1+cpu"),
        exits=USERS,
    ),
    Fault(
        "version",
        "torch patch",
        ("environment-differs", "library-version-conflict"),
        _version("torch", "2.13.1+cpu"),
        exits=USERS,
    ),
    Fault(
        "version",
        "numpy older",
        ("environment-differs", "library-version-conflict"),
        _version("numpy", "1.26.4"),
        exits=USERS,
    ),
    Fault("clock", "30 s ahead", ("clock-skew",), _clock(30)),
    Fault("clock", "120 s behind", ("clock-skew",), _clock(-120)),
    Fault("clock", "5 s ahead", ("clock-skew",), _clock(5)),
    Fault(
        "mount-missing",
        "not mounted",
        ("mount-missing",),
        lambda stand, host, _other: machine.unmounted(stand, host),
    ),
    Fault(
        "mount-missing",
        "another disk",
        ("mount-missing",),
        lambda stand, host, _other: machine.mounted_over(stand, host, "-t", "tmpfs", "scratch"),
    ),
    Fault(
        "mount-missing",
        "a disk of another kind",
        ("mount-missing",),
        lambda stand, host, _other: machine.mounted_over(stand, host, "-t", "ramfs", "local"),
    ),
    Fault(
        "mount-missing",
        "read-only",
        ("mount-missing",),
        lambda stand, host, _other: machine.read_only(stand, host),
    ),
    Fault("mount-hung", "no answer, callers in state D", ("storage-stall",), _hung("asleep")),
    Fault("mount-hung", "requests not taken", ("storage-stall",), _hung("deaf")),
    Fault("name", "own name at 127.0.1.1", ("hostname-resolution",), _own_name("127.0.1.1")),
    Fault("name", "own name at 127.0.0.1", ("hostname-resolution",), _own_name("127.0.0.1")),
    Fault("name", "own name unknown", ("hostname-resolution",), _own_name("")),
    Fault("quota", "a fifth of a CPU", ("cpu-quota",), _quota(0.2)),
    Fault("quota", "one CPU of two", ("cpu-quota",), _quota(1.0)),
    Fault("quota", "half a CPU", ("cpu-quota",), _quota(0.5)),
)
# Beyond those: what else happens to nodes.
FURTHER = (
    Fault(
        "frozen",
        "all stopped",
        ("node-not-answering",),
        lambda _stand, host, _other: machine.frozen(host),
        cuts=True,
    ),
    Fault(
        "cable",
        "cut",
        ("node-not-answering",),
        lambda _stand, host, _other: links.unplugged(host),
        cuts=True,
    ),
    Fault(
        "large-packets",
        "lost",
        (*WAY, "link-degraded"),
        _large_packets_lost,
        cuts=True,
        outside=True,
    ),
    Fault("other-name", "unknown here", ("hostname-resolution",), _name_of_another("")),
    Fault(
        "other-name",
        "leads elsewhere here",
        ("hostname-resolution",),
        _name_of_another("10.99.0.7"),
    ),
    Fault(
        "disk-full", "TMPDIR", ("disk-full",), _full_disk, outside=True
    ),  # a batch step has a TMPDIR of its own
    Fault("processes", "64", ("process-limit",), _limit("--nproc=64:64"), exits=USERS),
)
EVERY = PROMISED + FURTHER
