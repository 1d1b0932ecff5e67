"""The cluster that all runs share: four hosts with SLURM and sshd, a shared data folder on a
mount of its own, and a profile for each node.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import hosts as made_hosts
from tests.cluster import slurm as made_slurm
from tests.cluster import ssh as made_ssh
from tests.cluster.hosts import Host
from tests.cluster.slurm import Slurm

COUNT = 4
DAEMONS = ("slurmd", "sshd")
SLURMD_PORT = 17802
# Limits are the node's own, as on sites that propagate none; what a node's profile exports reaches
# each task through the task prolog.
SLURM = "PropagateResourceLimits=NONE\nTaskProlog={prolog}"
PROLOG = (
    '#!/bin/sh\n[ ! -f "{folder}/$SLURMD_NODENAME" ] || cat "{folder}/$SLURMD_NODENAME"\nexit 0\n'
)


class CannotPlantError(Exception):
    """This fault cannot be made on this machine; the message is the reason."""


def why_not() -> str:
    """The reason why there can be no cluster here, empty where there can."""
    return made_hosts.why_not() or made_slurm.why_not() or made_ssh.why_not()


@dataclass
class Stand:
    """`data` is a folder that all hosts see on a mount of its own, `scratch` one for short-lived
    files.

    `profile` holds a file with `export` lines for each host that has any.
    """

    hosts: Sequence[Host]
    slurm: Slurm
    ssh_config: Path
    folder: Path
    data: Path
    scratch: Path
    profile: Path

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    def daemons(self, host: Host) -> list[int]:
        """The processes of this host that start the others."""
        return [pid for pid in host.pids() if _name(pid) in DAEMONS]

    def restart(self, host: Host, *limits: str, **variables: str) -> None:
        """Start the daemons of the host again under these limits (as prlimit takes them) and with
        these variables for what they start.

        Limits that were lowered cannot always be raised again, and the environment of sessions is
        read once.
        """
        file = self.profile / host.name
        file.unlink(missing_ok=True)
        if variables:
            file.write_text(
                "".join(f"export {name}={value}\n" for name, value in variables.items()),
                encoding="utf-8",
            )
        under = ("prlimit", *limits, "--") if limits else ()
        self._ended(host)
        conf = self.slurm.conf
        host.start(
            *under,
            "slurmd",
            "-D",
            "-f",
            str(conf),
            "-N",
            host.name,
            log="slurmd.out",
            env=self.slurm.env,
        )
        words = (
            ("-o", "SetEnv " + " ".join(f"{name}={value}" for name, value in variables.items()))
            if variables
            else ()
        )
        host.start(
            *under,
            made_ssh.SSHD,
            "-D",
            "-e",
            "-f",
            str(self.ssh_config.parent / f"sshd_config-{host.name}"),
            *words,
            log="sshd.out",
        )
        until = time.monotonic() + 20
        while not (_answers(host, 22) and _answers(host, SLURMD_PORT)):
            if time.monotonic() > until:
                raise RuntimeError(f"the daemons of {host.name} did not start again")
            time.sleep(0.05)

    def _ended(self, host: Host) -> None:
        for pid in self.daemons(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 5
        while self.daemons(host) and time.monotonic() < until:
            time.sleep(0.02)
        for service in [one for one in host.services if one.poll() is not None]:
            host.services.remove(service)


def _answers(host: Host, port: int) -> bool:
    try:
        with socket.create_connection((host.address, port), 1):
            return True
    except OSError:
        return False


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


@contextlib.contextmanager
def standing(folder: Path, lane: int) -> Iterator[Stand]:
    """Make the cluster. All is gone when this is left."""
    data, scratch, profile = folder / "data", folder / "scratch", folder / "profile"
    for path in (data, scratch, profile):
        path.mkdir(parents=True, exist_ok=True)
    prolog = folder / "task_prolog"
    prolog.write_text(PROLOG.format(folder=profile), encoding="utf-8")
    prolog.chmod(0o755)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64g", "shared-data", str(data)], check=True, timeout=20
    )  # before the hosts: they all get it
    try:
        (data / "train-00000.bin").write_bytes(bytes(2**20))
        with (
            made_hosts.hosts(COUNT, folder / "hosts", lane=lane, shm="1g") as nodes,
            made_slurm.slurm(nodes, folder / "slurm", more=SLURM.format(prolog=prolog)) as slurm,
            made_ssh.sshd(nodes, folder / "ssh") as config,
        ):
            yield Stand(nodes, slurm, config, folder, data, scratch, profile)
    finally:
        subprocess.run(
            ["umount", "--lazy", str(data)], check=False, capture_output=True, timeout=20
        )
