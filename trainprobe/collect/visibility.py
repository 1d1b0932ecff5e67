"""What this tool can see here: each look is tried once, on nothing but ourselves."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Mapping, Tuple

from trainprobe.collect import cgroup, permission, procfs, pyspy
from trainprobe.collect.collectors.gpus import read_gpus
from trainprobe.collect.collectors.kernel_log import read_kernel_log
from trainprobe.collect.collectors.ras import port_of
from trainprobe.collect.deep_refusals import RECORDER_SIZES
from trainprobe.collect.look_results import LookResult
from trainprobe.collect.members import host_name
from trainprobe.errors import UsageError
from trainprobe.model.visibility import Tried, Visibility
from trainprobe.system.child import ChildSpec
from trainprobe.system.keeper import Keeper
from trainprobe.system.run import run
from trainprobe.system.working_folders import working_folder
from trainprobe.targets import interpreter

DUMP_S = 5.0
GPUS_S = 5.0
LOG_S = 3.0
START_S = 0.3  # for a Python to come from its start to its first line
TCP = "/proc/net/tcp"
LISTENS = "0A"
PROGRAMS = ("srun", "squeue", "scontrol", "kubectl", "ssh", "ncclras", "py-spy")
IN_POD = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def see(python: str = "", environ: Mapping[str, str] = os.environ) -> Visibility:
    """Try every look and return what came of it. Nothing is raised for what is not there.

    Raises UsageError where `python` is no Python that answers.
    """
    status = procfs.status_fields(procfs.read_or_none("/proc/self/status") or "")
    path, why_no_py_spy = pyspy.find()
    asked = _python(python, environ)
    port = port_of(environ)
    return Visibility(
        host=host_name(),
        user=permission.user_name(os.geteuid()),
        uid=os.geteuid(),
        capabilities=status.get("CapEff", ""),
        yama=procfs.number((procfs.read_or_none(permission.YAMA) or "").strip()),
        container=_container(environ),
        py_spy=path or "",
        no_py_spy=why_no_py_spy,
        dump=_dump(path) if path else Tried("unavailable", why_no_py_spy),
        kernel_log=_kernel_log(),
        gpus=_gpus(),
        cgroups={name: group.version for name, group in cgroup.find().by_controller.items()},
        hidepid=hidepid_of(procfs.read_or_none("/proc/self/mountinfo") or ""),
        programs={name: where for name in PROGRAMS if (where := shutil.which(name))},
        slurm_job=environ.get("SLURM_JOB_ID", ""),
        kube=_kube(environ),
        ras=_listens(port),
        ras_port=port,
        python=asked.path,
        python_version=asked.version,
        torch=asked.torch or "",
        cuda=asked.cuda or "",
        nccl=asked.nccl,
        no_torch=asked.reason,
        variables={name: environ[name] for name in RECORDER_SIZES if name in environ},
    )


def _python(python: str, environ: Mapping[str, str]) -> interpreter.Interpreter:
    try:
        return interpreter.find(python or None, environ=environ, modules=())
    except UsageError as error:
        if python:
            raise
        return interpreter.Interpreter("", "", reason=str(error))


def _dump(path: str) -> Tried:
    """Let py-spy look at a sleeping Python that is its sibling, as a rank is to it."""
    with working_folder() as folder, Keeper(folder) as keeper:
        words = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)")
        out = os.path.join(folder, "out")
        keeper.start([ChildSpec("sleeper", words, dict(os.environ), folder, out, out)])
        pid = keeper.children["sleeper"].pid
        if pid is None:
            return Tried("unavailable", "no process could be started to look at")
        until = time.monotonic() + DUMP_S
        while True:
            time.sleep(START_S)
            ran = run([path, "dump", "--json", "--pid", str(pid)], timeout_s=DUMP_S)
            dump = pyspy.parse(ran.stdout, pid) if ran.ended.code == 0 else None
            if dump is not None and dump.threads:
                return Tried("ok", found=_version(path))
            outcome, reason = pyspy.why_failed(pid, ran.stderr.decode("utf-8", "replace"), None)
            if outcome == "denied" or time.monotonic() > until:
                return Tried(outcome, reason, _version(path))


def _version(path: str) -> str:
    ran = run([path, "--version"], timeout_s=2.0)
    return ran.stdout.decode("utf-8", "replace").strip()[:60]


def _kernel_log() -> Tried:
    result = read_kernel_log(time.time() - 60.0, LOG_S)
    return Tried(result.outcome, result.reason, result.source)


def _gpus() -> Tried:
    result: LookResult = read_gpus(GPUS_S)
    devices = result.data.get("devices") or []
    found = ""
    if devices:
        plural = "" if len(devices) == 1 else "s"
        found = f"{len(devices)} GPU{plural}, driver {result.data.get('driver')}"
    return Tried(result.outcome, result.reason, found)


def hidepid_of(mountinfo: str) -> str:
    """The value of hidepid of the mount of /proc, from /proc/self/mountinfo (proc(5))."""
    for line in mountinfo.splitlines():
        before, dash, behind = line.partition(" - ")
        words = before.split()
        if not dash or len(words) < 5 or words[4] != "/proc" or not behind.startswith("proc "):
            continue
        options = behind.split()[-1].split(",")
        return next((one.partition("=")[2] for one in options if one.startswith("hidepid=")), "")
    return ""


def _container(environ: Mapping[str, str]) -> str:
    """What tells that we are in a container, empty where nothing does."""
    for path, kind in (("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")):
        if os.path.exists(path):
            return f"{kind} ({path})"
    for name, kind in (
        ("KUBERNETES_SERVICE_HOST", "a Kubernetes pod"),
        ("APPTAINER_CONTAINER", "Apptainer"),
        ("SINGULARITY_CONTAINER", "Singularity"),
    ):
        if environ.get(name):
            return f"{kind} ({name})"
    named = environ.get("container", "")
    return f"{named} (the variable `container`)" if named else ""


def _kube(environ: Mapping[str, str]) -> str:
    for path in (
        *environ.get("KUBECONFIG", "").split(os.pathsep),
        os.path.expanduser("~/.kube/config"),
    ):
        if path and os.path.exists(path):
            return path
    return "the account of this pod" if os.path.exists(IN_POD) else ""


def _listens(port: int) -> bool:
    """Whether anybody of this network namespace listens on `port` (proc(5), /proc/net/tcp)."""
    wanted: Tuple[str, ...] = (f":{port:04X}",)
    for path in (TCP, f"{TCP}6"):
        for line in (procfs.read_or_none(path, 2**22) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == LISTENS and words[1].endswith(wanted):
                return True
    return False
