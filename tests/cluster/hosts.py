"""Hosts that are namespaces of this machine: own network, name, process table, /dev/shm and /run,
joined by a bridge; their links can be cut, slowed and blocked.

Packets are dropped by nftables; a delay needs a link through relay.py, since not every kernel has
netem. They share the file system, as the nodes of a cluster share /home. What runs on one ends with
it: the first process of its table is killed. Needs root, iproute2, nftables and util-linux.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TABLE = "trainprobe_faults"
RELAY = Path(__file__).with_name("relay.py")
PROGRAMS = ("ip", "nft", "unshare", "nsenter", "mount")
INIT = """
set -e
mount --make-rprivate /
mkdir -p {folder}/cgroup
mount --rbind /sys/fs/cgroup {folder}/cgroup
mount -t sysfs sysfs /sys
mount --rbind {folder}/cgroup /sys/fs/cgroup
mount -t tmpfs -o size={shm} shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mkdir -m 755 /run/sshd
mount --bind {names} /etc/hosts
[ ! -e /etc/resolv.conf ] || mount --bind {names}.resolver /etc/resolv.conf
hostname {name}
ip link set lo up
echo $$ > {folder}/started
trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done
"""


def why_not() -> str:
    """The reason why hosts cannot be made here, empty where they can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--pid", "--fork", "--mount-proc", "true"],
        capture_output=True,
        check=False,
    )
    return (
        ""
        if tried.returncode == 0
        else f"namespaces are refused: {tried.stderr.decode().strip()[:200]}"
    )


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()[:300]}")


@dataclass(frozen=True)
class Bridge:
    """Where the hosts of one cluster meet. `lane` keeps the clusters of test processes apart
    that run at the same time, from 0 to 99.
    """

    lane: int

    @property
    def name(self) -> str:
        return f"tpbr{self.lane}"

    @property
    def address(self) -> str:
        """That of this machine on it."""
        return self.of(254)

    def of(self, number: int) -> str:
        return f"10.213.{100 + self.lane}.{number}"


@dataclass
class Host:
    """One host. `number` counts from 1; it is `node<number>`. `space` is its network's name and
    ends those of its interfaces outside.
    """

    bridge: Bridge
    number: int
    folder: Path
    init: subprocess.Popen[bytes]
    pid: int
    relay: subprocess.Popen[bytes] | None = None
    services: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def address(self) -> str:
        return self.bridge.of(self.number)

    @property
    def outer(self) -> str:
        """The end of its cable that is on the bridge."""
        return _outer(self.bridge, self.number)

    def argv(self, *argv: str) -> list[str]:
        """Return the command that runs `argv` on this host, as root."""
        return [
            "nsenter",
            "--target",
            str(self.pid),
            "--net",
            "--uts",
            "--mount",
            "--pid",
            "--",
            *argv,
        ]

    def run(self, *argv: str, timeout_s: float = 20.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*argv), capture_output=True, text=True, check=False, timeout=timeout_s
        )

    def start(
        self, *argv: str, log: str, env: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a service on this host; its output goes to a file of this name in the host's
        folder.
        """
        with (self.folder / log).open("wb") as out:
            child = subprocess.Popen(
                self.argv(*argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=env,
                start_new_session=True,
            )
        self.services.append(child)
        return child

    # ---- its link

    def delayed(self, milliseconds: float) -> None:
        """Let every frame take so long, each way; only for a host that was made with a relay."""
        if self.relay is None:
            raise ValueError(f"{self.name} has no relay; name it in hosts(relayed=...)")
        (self.folder / "delay").write_text(f"{milliseconds:g}", encoding="ascii")
        time.sleep(0.15)  # the relay reads it ten times a second

    def losing(self, percent: int) -> None:
        """Drop so many of a hundred packets that come in, by chance."""
        self._rules("input", f"numgen random mod 100 < {percent} drop")

    def limited(self, kbytes_per_s: int) -> None:
        """Drop what comes in faster than that."""
        self._rules("input", f"limit rate over {kbytes_per_s} kbytes/second burst 64 kbytes drop")

    def deaf(self) -> None:
        """Nothing reaches it any more, what it sends goes out: packets dropped one way."""
        self._rules("input", "drop")

    def blocks(self, ports: str) -> None:
        """Drop TCP to these ports of it, such as `1024-65535` or `29500`, as a firewall would."""
        self._rules("input", f"tcp dport {ports} drop")

    def takes_no_new(self, ports: str) -> None:
        """Drop what would begin a connection to these ports of it, as a firewall that knows
        connections does.
        """
        self._rules("input", f"tcp flags & (syn | ack) == syn tcp dport {ports} drop")

    def cut(self) -> None:
        """Pull its cable."""
        _run("ip", "link", "set", self.outer, "down")

    def healed(self) -> None:
        """Take back all of these."""
        _run("ip", "link", "set", self.outer, "up")
        subprocess.run(
            self._inside("nft", "delete", "table", "inet", TABLE), capture_output=True, check=False
        )
        if self.relay is not None:
            self.delayed(0)

    def _inside(self, *argv: str) -> list[str]:
        return ["ip", "netns", "exec", _space(self.bridge, self.number), *argv]

    def _rules(self, hook: str, rule: str) -> None:
        """The host's own loopback is left alone."""
        subprocess.run(
            self._inside("nft", "delete", "table", "inet", TABLE), capture_output=True, check=False
        )
        table = (
            f"table inet {TABLE} {{\n chain faults {{\n type filter hook {hook} priority 0\n"
            f' iifname "lo" accept\n {rule}\n }}\n}}\n'
        )
        subprocess.run(
            self._inside("nft", "-f", "-"), input=table, text=True, check=True, timeout=20
        )

    # ---- the whole host

    def pids(self) -> list[int]:
        """Return the processes of this host, by the numbers of this machine."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and os.readlink(f"/proc/{entry}/ns/pid") == own:
                    found.append(int(entry))
        return found

    def stop(self) -> None:
        """Freeze every process of it: it answers no more, and nothing is closed."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        entered = [
            child.pid for child in self.services
        ]  # nsenter stops itself where what it runs is stopped
        for pid in (*self.pids(), *entered):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        self.resume()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.relay is not None:
            self.relay.kill()
        for child in (self.init, *self.services, *([self.relay] if self.relay else [])):
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(15)  # the namespaces of a loaded machine take their time to go
        subprocess.run(
            ["ip", "netns", "del", _space(self.bridge, self.number)],
            capture_output=True,
            check=False,
        )


def _space(bridge: Bridge, number: int) -> str:
    return f"tp{bridge.lane}n{number}"


def _outer(bridge: Bridge, number: int) -> str:
    return f"tpv{bridge.lane}n{number}"


def _cable(space: str, outer: str) -> None:
    _run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)


def _relayed(space: str, outer: str, folder: Path) -> subprocess.Popen[bytes]:
    inner = f"i{outer}"
    (folder / "delay").write_text("0", encoding="ascii")
    relay = subprocess.Popen(
        [sys.executable, str(RELAY), outer, inner, str(folder / "delay")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert relay.stdout is not None
    with relay.stdout as said:
        ready = said.readline() == b"ready\n"
    if not ready:
        raise RuntimeError(f"the relay of {space} did not start")
    _run("ip", "link", "set", inner, "netns", space, "name", "eth0")
    return relay


def _made(
    bridge: Bridge, number: int, folder: Path, shm: str, names: Path, *, relayed: bool
) -> Host:
    space, outer = _space(bridge, number), _outer(bridge, number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "started").unlink(missing_ok=True)
    _run("ip", "netns", "add", space)
    relay = _relayed(space, outer, folder) if relayed else None
    if relay is None:
        _cable(space, outer)
    _run("ip", "link", "set", outer, "master", bridge.name, "up")
    for words in (
        ("addr", "add", f"{bridge.of(number)}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", bridge.address),
    ):
        _run("ip", "-n", space, *words)
    script = INIT.format(shm=shm, name=f"node{number}", folder=folder, names=names)
    with (folder / "init.log").open("wb") as log:
        enter = [
            "nsenter",
            f"--net=/run/netns/{space}",
            "unshare",
            "--uts",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            script,
        ]
        init = subprocess.Popen(
            enter, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    until = time.monotonic() + 10
    while not (folder / "started").exists():
        if init.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{space} did not start: {(folder / 'init.log').read_text()[:300]}")
        time.sleep(0.02)
    children = (
        Path(f"/proc/{init.pid}/task/{init.pid}/children").read_text(encoding="ascii").split()
    )
    return Host(bridge, number, folder, init, int(children[0]), relay)


@contextlib.contextmanager
def hosts(
    count: int, folder: Path, *, lane: int = 0, shm: str = "256m", relayed: Sequence[int] = ()
) -> Iterator[Sequence[Host]]:
    """Make `count` hosts on one bridge of this machine. All is gone when this is left.

    `shm` is the size of each /dev/shm, as mount takes it. Links of the hosts in `relayed` can be
    delayed.
    """
    bridge = Bridge(lane)
    leave(bridge, count)
    _run("ip", "link", "add", bridge.name, "type", "bridge")
    found: list[Host] = []
    try:
        _run("ip", "addr", "add", f"{bridge.address}/24", "dev", bridge.name)
        _run("ip", "link", "set", bridge.name, "up")
        folder.mkdir(parents=True, exist_ok=True)
        names = (
            folder / "hosts"
        )  # in place of /etc/hosts: torch's gloo meets at the address of the host's own name
        rows = "".join(f"{bridge.of(number)} node{number}\n" for number in range(1, count + 1))
        names.write_text(f"127.0.0.1 localhost\n{rows}", encoding="ascii")
        # torch asks for the name of each address that connects; a server beyond the bridge would
        # never answer, this one refuses at once
        Path(f"{names}.resolver").write_text(
            "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n", encoding="ascii"
        )
        found.extend(
            _made(bridge, number, folder / f"node{number}", shm, names, relayed=number in relayed)
            for number in range(1, count + 1)
        )
        yield found
    finally:
        for host in found:
            host.end()
        leave(bridge, count)


def leave(bridge: Bridge, count: int) -> None:
    """Remove what an earlier run that was killed has left."""
    for number in range(1, count + 1):
        subprocess.run(
            ["ip", "netns", "del", _space(bridge, number)], capture_output=True, check=False
        )
        subprocess.run(
            ["ip", "link", "del", _outer(bridge, number)], capture_output=True, check=False
        )
    subprocess.run(["ip", "link", "del", bridge.name], capture_output=True, check=False)
