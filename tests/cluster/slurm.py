"""A real SLURM over such hosts: munged and slurmctld on this machine, a slurmd on each host."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.hosts import Host

PROGRAMS = ("slurmctld", "slurmd", "srun", "sinfo", "munged")
CONF = """
ClusterName=probe
SlurmctldHost={here}({address})
SlurmctldPort={port}
SlurmdPort=17802
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={socket}
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdTimeout=30
KillWait=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{more}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def why_not() -> str:
    """The reason why SLURM cannot run here, empty where it can."""
    missing = [
        name
        for name in PROGRAMS
        if shutil.which(name) is None and not Path("/usr/sbin", name).exists()
    ]
    return (
        f"{', '.join(missing)} not installed (slurmctld slurmd slurm-client munge)"
        if missing
        else ""
    )


@dataclass
class Slurm:
    """`conf` is what SLURM_CONF must say to reach it."""

    conf: Path
    hosts: Sequence[Host]
    services: list[subprocess.Popen[bytes]]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def run(self, *argv: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run one of SLURM's commands on this machine, as on a login node."""
        return subprocess.run(
            argv,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )

    def states(self) -> dict[str, str]:
        """Return the state of each node, as sinfo has it."""
        rows = self.run("sinfo", "--noheader", "--Node", "--format=%N %T").stdout.split("\n")
        return {row.split()[0]: row.split()[1] for row in rows if len(row.split()) == 2}

    def job(self, text: str, *options: str) -> int:
        """Submit a batch script and return its job id."""
        script = self.conf.parent / f"job-{secrets.token_hex(4)}.sh"
        script.write_text(text, encoding="utf-8")
        done = self.run(
            "sbatch", "--parsable", "--chdir", str(self.conf.parent), *options, str(script)
        )
        if done.returncode != 0:
            raise RuntimeError(f"sbatch: {done.stderr.strip()[:300]}")
        return int(done.stdout.strip().partition(";")[0])


@contextlib.contextmanager
def slurm(nodes: Sequence[Host], folder: Path, *, more: str = "") -> Iterator[Slurm]:
    """Start SLURM over these hosts and wait until all of them are idle. `more` are further lines
    of its configuration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state").mkdir(exist_ok=True)
    spool = tempfile.mkdtemp(
        prefix="spool-"
    )  # short: slurmstepd's socket lies there, and its path may have 108 characters
    for host in nodes:
        Path(spool, host.name).mkdir()
    services: list[subprocess.Popen[bytes]] = []
    try:
        munge = _munged(folder, services)
        rows = "\n".join(
            f"NodeName={host.name} NodeAddr={host.address} CPUs=4 RealMemory=2000 State=UNKNOWN"
            for host in nodes
        )
        conf = folder / "slurm.conf"
        conf.write_text(
            CONF.format(
                here=socket.gethostname(),
                address=nodes[0].bridge.address,
                port=17700 + nodes[0].bridge.lane,
                folder=folder,
                spool=spool,
                socket=munge,
                more=more,
                nodes=rows,
            ),
            encoding="utf-8",
        )
        found = Slurm(conf, nodes, services)
        with (folder / "slurmctld.out").open("wb") as out:
            services.append(
                subprocess.Popen(
                    ["slurmctld", "-D", "-f", str(conf)],
                    env=found.env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )
        for host in nodes:
            host.start(
                "slurmd", "-D", "-f", str(conf), "-N", host.name, log="slurmd.out", env=found.env
            )
        _wait(found)
        yield found
    finally:
        for child in reversed(services):
            child.terminate()
        for child in services:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
        shutil.rmtree(spool, ignore_errors=True)


def _munged(folder: Path, services: list[subprocess.Popen[bytes]]) -> Path:
    """Start a munged of our own, with a key of its own."""
    own = folder / "munge"
    own.mkdir(mode=0o755, exist_ok=True)
    key, answers = own / "munge.key", own / "munge.socket"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    argv = [
        "munged",
        "--foreground",
        f"--key-file={key}",
        f"--socket={answers}",
        f"--pid-file={own}/pid",
        f"--log-file={own}/log",
        f"--seed-file={own}/seed",
        "--force",
    ]
    with (folder / "munged.out").open("wb") as out:
        services.append(
            subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        )
    until = time.monotonic() + 10
    while not answers.exists():
        if time.monotonic() > until:
            raise RuntimeError(
                f"munged did not start: {(folder / 'munged.out').read_text()[-300:]}"
            )
        time.sleep(0.05)
    return answers


def _wait(found: Slurm) -> None:
    until = time.monotonic() + 40
    while time.monotonic() < until:
        states = found.states()
        if len(states) == len(found.hosts) and all(state == "idle" for state in states.values()):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the nodes did not become idle: {found.states()}")
