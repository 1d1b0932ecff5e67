"""A cluster of four hosts for one job: made from tests/cluster of this checkout, and gone when it is left."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml

HERE = Path(__file__).parent
TREE = Path(__file__).resolve().parents[5]
sys.path.insert(0, str(TREE))

from tests.cluster import hosts as made_hosts  # noqa: E402
from tests.cluster import slurm as made_slurm  # noqa: E402
from tests.cluster import ssh as made_ssh  # noqa: E402

LANE = 96
BIN = HERE / "venv" / "bin"
HOME = Path("/home/mlops")
POINTS = [Path("/scratch"), Path("/tmp/ray"), Path("/shared")]


class Rig:
    def __init__(self, job, nodes, slurm, config, run):
        self.job, self.hosts, self.slurm, self.config, self.run_dir = job, nodes, slurm, config, run
        self.plan = yaml.safe_load((run / "plan.yaml").read_text())
        self.env = {
            "PATH": f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(HOME),
            "USER": "root",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "SLURM_CONF": str(slurm.conf),
            "CLUSTER_SSH": f"ssh -F {config}",
            "TRAINPROBE_SSH": f"ssh -F {config}",
        }
        self.children = []

    def host(self, name):
        return next(one for one in self.hosts if one.name == name)

    def on(self, host, command, *, log=None, env=None):
        """Start a shell command on a host in the run's folder."""
        out = (self.run_dir / (log or f"{host.name}.log")).open("ab")
        child = subprocess.Popen(
            host.argv("bash", "-c", f"cd {self.run_dir} && {command}"),
            env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )
        self.children.append(child)
        return child

    def call(self, host, command, timeout_s=60, env=None):
        return subprocess.run(
            host.argv("bash", "-c", f"cd {self.run_dir} && {command}"), env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False,
        )

    def local(self, host, point, source):
        """What this host alone has at this place."""
        Path(source).mkdir(parents=True, exist_ok=True)
        done = host.run("mount", "--bind", str(source), str(point))
        assert done.returncode == 0, done.stderr

    def names(self, host, text):
        """Lines that this host's /etc/hosts has beside the usual ones."""
        path = self.run_dir.parent / f"hosts-{host.name}"
        base = "127.0.0.1 localhost\n" + "".join(f"{h.address} {h.name}\n" for h in self.hosts)
        path.write_text(base + text)
        assert host.run("mount", "--bind", str(path), "/etc/hosts").returncode == 0

    def several_on_one(self):
        """A SLURM of three nodes cn[01-03] on node1 alone."""
        one, base = self.hosts[0], self.slurm.conf.parent
        folder = base / "one"
        spool = Path("/tmp/tpspool96")
        shutil.rmtree(spool, ignore_errors=True)
        for name in ("cn01", "cn02", "cn03"):
            (spool / name).mkdir(parents=True)
        (folder / "state").mkdir(parents=True)
        text = made_slurm.CONF.format(here="node1", address=one.address, port=17990, folder=folder,
            spool=spool, socket=base / "munge/munge.socket", more="",
            nodes=f"NodeName=cn[01-03] NodeHostname=node1 NodeAddr={one.address} Port=[17001-17003] CPUs=2 RealMemory=2000 State=UNKNOWN")
        text = text.replace("SlurmdPort=17802\n", "")
        conf = folder / "slurm.conf"
        conf.write_text(text)
        self.env["SLURM_CONF"] = str(conf)
        one.start("slurmctld", "-D", "-f", str(conf), log="ctld-one.out", env={**os.environ, "SLURM_CONF": str(conf)})
        for name in ("cn01", "cn02", "cn03"):
            one.start("slurmd", "-D", "-f", str(conf), "-N", name, log=f"{name}.out", env={**os.environ, "SLURM_CONF": str(conf)})
        until = time.monotonic() + 40
        while time.monotonic() < until:
            rows = self.call(one, "sinfo -h -N -o '%N %T'").stdout.split()
            if rows.count("idle") == 3:
                return
            time.sleep(0.5)
        raise RuntimeError(f"cn nodes: {rows}")

    def pids(self, word):
        """(host, pid of this machine, command line) of what runs on the hosts with this word in it."""
        found = []
        for host in self.hosts:
            for pid in host.pids():
                with contextlib.suppress(OSError):
                    line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if word in line:
                        found.append((host, pid, line.strip()))
        return found

    def environ(self, pid):
        with contextlib.suppress(OSError):
            raw = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return dict(one.decode(errors="replace").split("=", 1) for one in raw if b"=" in one)
        return {}


def _site(run):
    path = run / "site_setup.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("site_setup", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.unlink()  # a user's folder has no such file
    return module


def _seen(rig, text, began):
    """Wait until a log of the run has this text: a loaded machine starts jobs slowly."""
    while text and time.monotonic() - began < 200:
        for log in [*rig.run_dir.rglob("*.log"), *rig.run_dir.rglob("*.out")]:
            if text in log.read_text(errors="replace"):
                return
        time.sleep(0.5)
    if text:
        raise RuntimeError(f"never saw {text!r}")


@contextlib.contextmanager
def playing(job, out):
    """Make the cluster, start the job, wait until it is broken, and give the rig."""
    out.mkdir(parents=True, exist_ok=True)
    base = Path("/tmp/tpb96")
    shutil.rmtree(base, ignore_errors=True)
    made = [p for p in (*POINTS, HOME) if not p.exists()]
    for point in (*POINTS, HOME):
        point.mkdir(parents=True, exist_ok=True)
    run = HOME / "runs" / job
    shutil.rmtree(run, ignore_errors=True)
    run.parent.mkdir(exist_ok=True)
    shutil.copytree(HERE / "programs" / job, run)
    rig = None
    try:
        with (
            made_hosts.hosts(4, base / "hosts", lane=LANE, relayed=(4,)) as nodes,
            made_slurm.slurm(nodes, base / "slurm") as found,
            made_ssh.sshd(nodes, base / "ssh") as config,
        ):
            rig = Rig(job, nodes, found, config, run)
            for host in nodes:
                for point in ("/scratch", "/tmp/ray"):
                    own = base / "own" / host.name / point.strip("/").replace("/", "_")
                    rig.local(host, point, own)
                    own.chmod(0o777)
            site = _site(run)
            if site and hasattr(site, "before"):
                site.before(rig)
            (run / "plan.yaml").unlink()
            began = time.monotonic()
            if rig.plan.get("start") == "all":
                for number in range(rig.plan["nodes"]):
                    rig.on(nodes[number], "exec bash launch.sh", env={"POD_INDEX": str(number)})
            else:
                rig.on(nodes[0], "exec bash launch.sh", log="launch.log")
            _seen(rig, rig.plan.get("until", ""), began)
            if site and hasattr(site, "later"):
                site.later(rig)
            time.sleep(rig.plan["settle_s"])
            try:
                yield rig
            finally:
                for log in [*run.rglob("*.log"), *run.rglob("*.out")]:
                    with contextlib.suppress(OSError):
                        name = str(log.relative_to(run)).replace("/", "__")
                        (out / name).write_bytes(log.read_bytes()[-200_000:])
    finally:
        for child in rig.children if rig else []:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
        for folder in (run, base, Path("/tmp/tpspool96")):
            shutil.rmtree(folder, ignore_errors=True)
        for point in made:
            shutil.rmtree(point, ignore_errors=True)


def slurm_job(rig):
    rows = rig.call(rig.hosts[0], "squeue -h -o %i -t R").stdout.split()
    return rows[0] if rows else ""
