"""Jobs over nodes at which `trainprobe attach` looks."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.cluster import slurm as made_slurm
from tests.cluster.hosts import Host
from tests.gallery.nodes.links import rule
from tests.gallery.nodes.once_wrong.situation import (
    Look,
    Seen,
    Situation,
    batch_variables,
    called,
    names,
    users,
    with_report,
)
from tests.gallery.nodes.stand import Stand
from tests.gallery.nodes.ways import ROOT

PROGRAMS = Path(__file__).with_name("programs")
TRAINING = PROGRAMS / "training.py"
RAY = "TRAINPROBE_RAY"  # the bin folder of an environment with Ray and torch
STARTS_WITHIN_S, HANGS_FOR_S = 150.0, 12.0
SPAN = "1024-65535"


def attach(stand: Stand, *words: str, on: Host | None = None, **more: str) -> Look:
    """`trainprobe attach WORDS`, typed on this machine or on a host."""
    typed = (sys.executable, "-m", "trainprobe", "attach", *words)

    def look(folder: Path) -> Seen:
        argv = [*typed, *with_report(folder)]
        env = {**users(stand), **more}
        return called(on.argv(*argv) if on else argv, folder, env, cwd=ROOT if on else None)

    return look


def has(*files: Path) -> None:
    """Wait until all of these are there."""
    until = time.monotonic() + STARTS_WITHIN_S
    while not all(file.exists() for file in files):
        if time.monotonic() > until:
            missing = ", ".join(file.name for file in files if not file.exists())
            raise RuntimeError(f"the job did not start: no {missing}")
        time.sleep(0.2)


def hangs(*files: Path) -> None:
    has(*files)
    time.sleep(HANGS_FOR_S)


@contextlib.contextmanager
def batch(stand: Stand, folder: Path, text: str, *options: str) -> Iterator[int]:
    """Submit this job, and cancel it in the end."""
    head = "#!/bin/bash\nexport OMP_NUM_THREADS=1\n"
    output = f"--output={folder / 'slurm.out'}"
    job = stand.slurm.job(head + text, output, *options)
    try:
        yield job
    finally:
        cancelled(stand.slurm.run, job)


def cancelled(run: object, job: int) -> None:
    assert callable(run)
    run("scancel", "--signal=KILL", "--full", str(job))
    run("scancel", str(job))


def ended(hosts: Sequence[Host], word: str) -> None:
    """Kill what runs on the hosts with this word in its command line."""
    for host in hosts:
        for pid in host.pids():
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)


def gone(host: Host, service: subprocess.Popen[bytes]) -> None:
    """Wait for what was killed; the host's end kills what is left."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        service.wait(20)
        host.services.remove(service)


# ---- a SLURM of several nodes on one machine


@contextlib.contextmanager
def several_on_one(stand: Stand, folder: Path) -> Iterator[dict[str, str]]:
    """Give the environment for a SLURM of cn1 to cn3, whose daemons all run on node1."""
    host = stand.hosts[0]
    spool = Path(tempfile.mkdtemp(prefix="spool-"))
    nodes = ("cn1", "cn2", "cn3")
    for name in nodes:
        (spool / name).mkdir()
    (folder / "state").mkdir()
    text = made_slurm.CONF.format(
        here=host.name,
        address=host.address,
        port=17600 + host.bridge.lane,
        folder=folder,
        spool=spool,
        socket=stand.slurm.conf.parent / "munge" / "munge.socket",
        more="",
        nodes=(
            f"NodeName=cn[1-3] NodeHostname={host.name} NodeAddr={host.address}"
            " Port=[17001-17003] CPUs=2 RealMemory=2000 State=UNKNOWN"
        ),
    ).replace("SlurmdPort=17802\n", "")
    conf = folder / "slurm.conf"
    conf.write_text(text, encoding="utf-8")
    env = {**os.environ, "SLURM_CONF": str(conf)}
    daemons = [host.start("slurmctld", "-D", "-f", str(conf), log="ctld-one.out", env=env)]
    daemons += [
        host.start("slurmd", "-D", "-f", str(conf), "-N", name, log=f"{name}.out", env=env)
        for name in nodes
    ]
    try:
        until = time.monotonic() + 60
        idle = 0
        while idle < len(nodes):
            if time.monotonic() > until:
                raise RuntimeError("the nodes of one machine did not become idle")
            time.sleep(0.3)
            said = _on(host, env, "sinfo", "--noheader", "--Node", "--format=%T")
            idle = said.split().count("idle")
        yield env
    finally:
        ended([host], str(conf))
        for one in daemons:
            gone(host, one)
        shutil.rmtree(spool, ignore_errors=True)


def _on(host: Host, env: Mapping[str, str], *argv: str) -> str:
    return subprocess.run(
        host.argv(*argv),
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    ).stdout


@contextlib.contextmanager
def one_machine(stand: Stand, folder: Path) -> Iterator[Look]:
    host = stand.hosts[0]
    with several_on_one(stand, folder) as env:
        script = folder / "job.sh"
        script.write_text(
            f"#!/bin/bash\nexport OMP_NUM_THREADS=1 MASTER_ADDR={host.address} MASTER_PORT=29651\n"
            f"srun -N3 -n3 {sys.executable} {TRAINING} {folder} 2\n",
            encoding="utf-8",
        )
        output = f"--output={folder / 'slurm.out'}"
        said = _on(host, env, "sbatch", "--parsable", "-N3", "-n3", output, str(script))
        job = int(said)
        try:
            hangs(folder / "sick")
            yield attach(stand, "--slurm", str(job), on=host, SLURM_CONF=env["SLURM_CONF"])
        finally:
            _on(host, env, "scancel", "--signal=KILL", "--full", str(job))
            ended([host], str(folder))


# ---- steps and launchers


@contextlib.contextmanager
def two_steps(stand: Stand, folder: Path) -> Iterator[Look]:
    well, sick = folder / "well", folder / "smaller"
    for one in (well, sick):
        one.mkdir()
    steps = "".join(
        f"MASTER_PORT={port} srun --overlap -N2 -n{ranks} {sys.executable} {TRAINING} {place}"
        f" {rank} &\n"
        for place, ranks, rank, port in ((well, 4, -1, 29652), (sick, 2, 1, 29653))
    )
    master = f"export MASTER_ADDR={stand.hosts[0].address}\n"
    where = ("-N2", "--nodelist=node[1-2]", "--ntasks-per-node=2")
    with batch(stand, folder, f"{master}{steps}wait\n", *where) as job:
        has(well / "step-3")
        hangs(sick / "sick")
        yield attach(stand, "--slurm", str(job))


@contextlib.contextmanager
def lost_launcher(stand: Stand, folder: Path) -> Iterator[Look]:
    hosts = stand.hosts[:2]
    agents = [
        host.start(
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"),
            *(f"--node-rank={number}", f"--master-addr={hosts[0].address}", "--master-port=29654"),
            *(str(TRAINING), str(folder), "-1"),
            log="agent.out",
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for number, host in enumerate(hosts)
    ]
    try:
        has(folder / "step-0", folder / "step-1")
        ended(hosts[1:], "torch.distributed.run")
        time.sleep(HANGS_FOR_S)
        yield attach(stand, "--hosts", "node1,node2")
    finally:
        ended(hosts, str(folder))
        for host, agent in zip(hosts, agents, strict=True):
            gone(host, agent)


@contextlib.contextmanager
def wrong_master(stand: Stand, folder: Path) -> Iterator[Look]:
    wrong, right = stand.hosts[1].address, stand.hosts[0].address
    task = (
        f"export MASTER_ADDR={right}; [ $SLURMD_NODENAME != node3 ] || export MASTER_ADDR={wrong};"
        f" exec {sys.executable} {TRAINING} {folder} -1"
    )
    text = f"export MASTER_PORT=29655\nsrun -N3 -n3 bash -c '{task}'\n"
    with batch(stand, folder, text, "-N3", "--nodelist=node[1-3]", "--ntasks-per-node=1") as job:
        hangs(*(folder / f"began-{rank}" for rank in range(3)))
        yield attach(stand, "--slurm", str(job))


@contextlib.contextmanager
def too_large_a_world(stand: Stand, folder: Path) -> Iterator[Look]:
    text = (
        f"export MASTER_ADDR={stand.hosts[0].address} MASTER_PORT=29656 WORLD_SIZE=6\n"
        f"srun -N3 -n5 {sys.executable} {TRAINING} {folder} -1\n"
    )
    with batch(stand, folder, text, "-N3", "--nodelist=node[1-3]", "-n5") as job:
        hangs(*(folder / f"began-{rank}" for rank in range(5)))
        yield attach(stand, "--slurm", str(job))


@contextlib.contextmanager
def blocked_pair(stand: Stand, folder: Path) -> Iterator[Look]:
    two, three = stand.hosts[1:3]
    text = (
        f"export MASTER_ADDR={stand.hosts[0].address} MASTER_PORT=29657\n"
        f"srun -N3 -n3 {sys.executable} {TRAINING} {folder} -1\n"
    )
    with (
        rule(two, f"ip saddr {three.address} tcp dport {SPAN} tcp dport != 17802 drop"),
        rule(three, f"ip saddr {two.address} tcp dport {SPAN} tcp dport != 17802 drop"),
        batch(stand, folder, text, "-N3", "--nodelist=node[1-3]", "--ntasks-per-node=1") as job,
    ):
        hangs(*(folder / f"began-{rank}" for rank in range(3)))
        yield attach(stand, "--slurm", str(job))


# ---- Ray and mpirun


def no_ray() -> str:
    return "" if os.environ.get(RAY) else f"{RAY} names no bin folder with Ray and torch"


@contextlib.contextmanager
def _own_sessions(hosts: Sequence[Host], folder: Path) -> Iterator[None]:
    """Ray keeps its sockets below /tmp/ray, which the hosts would share."""
    place = Path("/tmp/ray")
    made = not place.exists()
    place.mkdir(exist_ok=True)
    try:
        for host in hosts:
            own = folder / f"ray-{host.name}"
            own.mkdir()
            host.run("mount", "--bind", str(own), str(place))
        yield
    finally:
        for host in hosts:
            host.run("umount", "--lazy", str(place))
        if made:
            with contextlib.suppress(OSError):
                place.rmdir()


@contextlib.contextmanager
def ray_actors(stand: Stand, folder: Path) -> Iterator[Look]:
    hosts = stand.hosts[:2]
    programs = Path(os.environ[RAY])
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    head = f"{hosts[0].address}:6379"
    started: list[tuple[Host, subprocess.Popen[bytes]]] = []
    with _own_sessions(hosts, folder):
        try:
            for host in hosts:
                of = (
                    ("--head", "--port=6379", "--include-dashboard=false")
                    if host is hosts[0]
                    else (f"--address={head}",)
                )
                started.append(
                    (
                        host,
                        host.start(
                            *(str(programs / "ray"), "start", "--block", *of, "--num-cpus=2"),
                            f"--node-ip-address={host.address}",
                            "--object-store-memory=80000000",
                            log="ray.out",
                            env=env,
                        ),
                    )
                )
                time.sleep(8)
            driver = (str(programs / "python"), str(PROGRAMS / "actors.py"), str(folder))
            started.append((hosts[0], hosts[0].start(*driver, log="driver.out", env=env)))
            hangs(folder / "sick")
            yield attach(stand, "--hosts", "node1,node2")
        finally:
            for word in (
                str(PROGRAMS / "actors.py"),
                str(programs),
                "/ray/",
                "ray::",
                "raylet",
                "gcs_server",
            ):
                ended(hosts, word)
            for host, one in started:
                gone(host, one)


def no_mpirun() -> str:
    return "" if shutil.which("mpirun") else "mpirun is not installed"


@contextlib.contextmanager
def by_mpirun(stand: Stand, folder: Path) -> Iterator[Look]:
    """Three hosts of two ranks each, started over ssh; rank 4 is sick."""
    host, three = stand.hosts[0], stand.hosts[:3]
    agent = folder / "ssh"
    agent.write_text(f'#!/bin/sh\nexec ssh -F {stand.ssh_config} "$@"\n', encoding="utf-8")
    agent.chmod(0o755)
    rank = (
        "export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE;"
        f" exec {sys.executable} {TRAINING} {folder} 4"
    )
    mpirun = host.start(
        *("mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(agent)),
        *("--mca", "plm", "rsh", "--mca", "ras", "^slurm"),
        *("--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0"),
        *("--host", ",".join(f"{one.name}:2" for one in three), "-np", "6"),
        *("-x", "OMP_NUM_THREADS=1", "-x", f"MASTER_ADDR={host.address}"),
        *("-x", "MASTER_PORT=29658", "bash", "-c", rank),
        log="mpirun.out",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        hangs(folder / "sick")
        yield attach(stand, "--hosts", "node1,node2,node3")
    finally:
        ended(three, str(folder))
        ended([host], "mpirun")
        gone(host, mpirun)


# ---- one of several nodes


def in_a_job_of(variables: str, *, reached: bool) -> Situation:
    """A sound job on three nodes of PBS or LSF; whoever looks sits on the first."""

    @contextlib.contextmanager
    def made(stand: Stand, folder: Path) -> Iterator[Look]:
        three = stand.hosts[:3]
        (folder / "nodes").write_text("node1\nnode2\nnode3\n", encoding="ascii")
        given = (
            {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "node1 1 node2 1 node3 1"}
            if variables == "LSF"
            else {"PBS_JOBID": "7.server", "PBS_NODEFILE": str(folder / "nodes")}
        )
        ranks = [
            host.start(
                *(sys.executable, str(TRAINING), str(folder), "-1"),
                log="rank.out",
                env={
                    **batch_variables(),
                    **given,
                    "RANK": str(number),
                    "WORLD_SIZE": "3",
                    "MASTER_ADDR": three[0].address,
                    "MASTER_PORT": "29659",
                    "OMP_NUM_THREADS": "1",
                },
            )
            for number, host in enumerate(three)
        ]
        try:
            hangs(*(folder / f"step-{rank}" for rank in range(3)))
            more = given if reached else {**given, "TRAINPROBE_SSH": "/bin/false"}
            words = ("--hosts", "all") if reached else ()
            yield attach(stand, *words, on=three[0], SLURM_CONF="/no/such", **more)
        finally:
            ended(three, str(folder))
            for host, one in zip(three, ranks, strict=True):
                gone(host, one)

    def wrongs(seen: Seen) -> list[str]:
        hosts = {row["host"] for row in seen.report.get("world", {}).get("ranks", ())}
        verdict = seen.report.get("verdict")
        if reached:
            said = [] if hosts == {"node1", "node2", "node3"} else [f"hosts {sorted(hosts)}"]
            # a job that does nothing but meet leaves open whether it is slow
            well = verdict in {"healthy", "undetermined"} and not seen.report.get("causes")
            return said + ([] if well else [f"verdict {verdict}"])
        said = [f"verdict {verdict}"] if verdict == "healthy" else []
        said += ["exit 0"] if seen.exit_code == 0 else []
        other = "on other hosts" in " ".join(seen.said.split())
        return said + ([] if other else ["the other nodes unmentioned"])

    how = "`attach --hosts all`" if reached else "`attach`, which reaches no other node"
    return Situation(
        f"{variables}: {'all nodes' if reached else 'one of three nodes'}",
        f"inside a {variables} allocation of three nodes, {how}",
        "“HEALTHY … on this node”, exit 0, the other nodes unmentioned",
        "all three nodes looked at" if reached else "not healthy, the other nodes said",
        made,
        wrongs,
    )


LOCK = ("file-lock-held",)
JOBS = (
    Situation(
        "one machine",
        "three single-rank srun tasks on three nodes of one machine's SLURM (`slurmd -N`),"
        " rank 2 waiting for a file lock",
        "right in 2 of 5; else the looks took the same rank and blamed `rank-exited-early`",
        "`file-lock-held`, rank 2, cn3",
        one_machine,
        names(LOCK, ("cn3",), (2,)),
    ),
    Situation(
        "two steps",
        "two steps of one job on the same nodes, the smaller one hung",
        "HEALTHY, exit 0",
        "`file-lock-held`, rank 1, node2",
        two_steps,
        names(LOCK, ("node2",), (1,)),
    ),
    Situation(
        "Ray actors",
        "Ray actors, one in flock",
        "HEALTHY in 5 of 6: only one actor got a number, the rest were dropped",
        "`file-lock-held`, rank 3",
        ray_actors,
        lambda seen: names(LOCK, seen.first.get("hosts", ())[:1] or ("a host",), (3,))(seen),
        no_ray,
    ),
    Situation(
        "lost launcher",
        "only one node's launcher killed",
        "HEALTHY; the lost launcher unmentioned",
        "`launcher-lost`, node2",
        lost_launcher,
        names(("launcher-lost",), ("node2",), verdicts=("at-risk",)),
    ),
    Situation(
        "wrong MASTER_ADDR",
        "wrong MASTER_ADDR on one node",
        "`unknown`, 12 %",
        "`launcher-args`, `rendezvous-incomplete` or `environment-differs`, node3",
        wrong_master,
        names(("launcher-args", "rendezvous-incomplete", "environment-differs"), ("node3",)),
    ),
    Situation(
        "too large a world",
        "5 tasks with WORLD_SIZE=6",
        "`unknown`; claims “world complete”",
        "`world-size-mismatch`, never “world complete”",
        too_large_a_world,
        lambda seen: names(
            ("world-size-mismatch",), seen.first.get("hosts", ()), never=("world complete",)
        )(seen),
    ),
    Situation(
        "blocked pair",
        "firewall on data ports between two nodes",
        "cause and ranks right, headline and `hosts` blame a healthy node",
        "`firewall-or-route`, rank 1 or 2 or both, node2 and node3",
        blocked_pair,
        lambda seen: names(
            ("firewall-or-route",),
            ("node2", "node3"),
            sorted({1, 2} & set(seen.first.get("ranks", ()))) or (1, 2),
        )(seen),
    ),
    *(
        in_a_job_of(system, reached=reached)
        for system in ("PBS", "LSF")
        for reached in (False, True)
    ),
    Situation(
        "mpirun",
        "mpirun over three nodes of two ranks, rank 4 waiting for a file lock",
        "not in the list of that day",
        "`file-lock-held`, rank 4, node3",
        by_mpirun,
        names(LOCK, ("node3",), (4,)),
        no_mpirun,
    ),
)
