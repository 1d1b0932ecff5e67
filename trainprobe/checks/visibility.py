"""What the values of one machine mean for a look at a job: each kind of look with yes, in part or
no, the reason, and what to type.
"""

from __future__ import annotations

from trainprobe.model.visibility import Seen, Visibility, VisibilityLine

CAP_SYS_PTRACE = 19  # linux/capability.h
RECORDER_SINCE = (2, 2)
RECORDER_ON = "export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_TRACE_BUFFER_SIZE=20000"
LOOSEN = "sudo sysctl kernel.yama.ptrace_scope=0"
OTHERS_LOCKS = "sudo mount -o remount,hidepid=0 /proc"


def conclude(here: Visibility) -> tuple[VisibilityLine, ...]:
    """Return one line for each kind of look, the most telling first."""
    return (
        _own_processes(here),
        _others(here),
        _py_spy(here),
        _proc(here),
        _kernel_log(here),
        _cgroups(here),
        _gpus(here),
        _torch(here),
        _recorder(here),
        _ras(here),
        _slurm(here),
        _kubectl(here),
        _ssh(here),
    )


def _may_trace(here: Visibility) -> bool:
    try:
        return bool(int(here.capabilities or "0", 16) >> CAP_SYS_PTRACE & 1)
    except ValueError:
        return False


def _own_processes(here: Visibility) -> VisibilityLine:
    name, title = "stacks", "stacks of your own jobs"
    if here.dump.outcome == "ok":
        where = f"; this is {here.container}" if here.container else ""
        scope = "there is no Yama" if here.yama is None else f"ptrace_scope is {here.yama}"
        says = f"A process of {here.user} was looked into ({scope}{where})."
        return VisibilityLine(name, title, "yes", says)
    if here.yama in (1, 2) and not _may_trace(here):
        remedy = LOOSEN
    elif here.container and not _may_trace(here):
        remedy = "docker run --cap-add SYS_PTRACE IMAGE"
        if "Kubernetes" in here.container:
            remedy = "kubectl explain pod.spec.containers.securityContext.capabilities.add"
    elif not here.py_spy:
        remedy = "pip install py-spy"
    else:
        remedy = "sudo trainprobe attach"
    return VisibilityLine(name, title, "no", _sentence(here.dump.reason), remedy)


def _others(here: Visibility) -> VisibilityLine:
    name, title = "others", "stacks of other users' jobs"
    if here.uid == 0 and _may_trace(here):
        return VisibilityLine(name, title, "yes", "We are root and hold SYS_PTRACE.")
    if _may_trace(here):
        return VisibilityLine(name, title, "yes", f"{here.user} holds SYS_PTRACE.")
    why = "root without the capability SYS_PTRACE" if here.uid == 0 else here.user
    remedy = "sudo trainprobe attach" if here.uid else "docker run --cap-add SYS_PTRACE IMAGE"
    return VisibilityLine(
        name, title, "no", f"We are {why}; only the own jobs can be seen.", remedy
    )


def _py_spy(here: Visibility) -> VisibilityLine:
    name, title = "py-spy", "py-spy"
    if not here.py_spy:
        return VisibilityLine(name, title, "no", _sentence(here.no_py_spy), "pip install py-spy")
    version = here.dump.found.removeprefix("py-spy ")
    return VisibilityLine(name, title, "yes", f"{version or 'It'} is {here.py_spy}.")


def _proc(here: Visibility) -> VisibilityLine:
    name, title = "proc", "processes in /proc"
    if here.hidepid in ("", "0", "off"):
        return VisibilityLine(name, title, "yes", "/proc shows the processes of all users.")
    says = f"/proc is mounted with hidepid={here.hidepid}: holders of locks and neighbours of"
    if here.uid == 0:
        return VisibilityLine(name, title, "yes", f"{says} other users stay visible to root.")
    return VisibilityLine(name, title, "part", f"{says} other users stay unknown.", OTHERS_LOCKS)


def _kernel_log(here: Visibility) -> VisibilityLine:
    name, title = "kernel-log", "kernel log"
    look = here.kernel_log
    if look.outcome == "ok":
        says = f"{look.found} tells of kills for memory, crashes and GPU errors (Xid)."
        return VisibilityLine(name, title, "yes", says)
    if look.outcome == "denied":
        remedy = "sudo sysctl kernel.dmesg_restrict=0"
        return VisibilityLine(name, title, "no", "It is closed to us.", remedy)
    remedy = "dmesg | tail -100   on the host, and: trainprobe explain FILE"
    return VisibilityLine(name, title, "no", _sentence(look.reason), remedy)


def _cgroups(here: Visibility) -> VisibilityLine:
    name, title = "cgroups", "limits of memory, CPUs and processes"
    by_version: dict[int, list[str]] = {}
    for controller, version in here.cgroups.items():
        by_version.setdefault(version, []).append(controller)
    told = "; ".join(
        f"cgroup v{version}: {', '.join(sorted(names))}"
        for version, names in sorted(by_version.items())
    )
    if "memory" in here.cgroups:
        return VisibilityLine(name, title, "yes", f"{told}.")
    says = f"{told}, and no memory controller." if told else "No cgroup can be read here."
    return VisibilityLine(name, title, "part" if told else "no", says, "mount | grep cgroup")


def _gpus(here: Visibility) -> VisibilityLine:
    name, title = "gpus", "GPUs (NVML)"
    look = here.gpus
    if look.outcome == "ok":
        return VisibilityLine(name, title, "yes", f"{look.found}.")
    if look.outcome == "unavailable":
        remedy = "nvidia-smi" if here.cuda else ""
        seen: Seen = "no" if here.cuda else "unused"
        return VisibilityLine(name, title, seen, _sentence(look.reason), remedy)
    return VisibilityLine(name, title, "part", _sentence(look.reason), "nvidia-smi")


def _torch(here: Visibility) -> VisibilityLine:
    name, title = "torch", "torch, for probes and demo"
    if not here.torch:
        remedy = f"{here.python or 'python3'} -m pip install torch"
        return VisibilityLine(name, title, "no", _sentence(here.no_torch), remedy)
    build = f"CUDA {here.cuda}" if here.cuda else "CPU build"
    says = f"{here.torch} ({build}) in {here.python}, Python {here.python_version}."
    return VisibilityLine(name, title, "yes", says)


def _recorder(here: Visibility) -> VisibilityLine:
    name, title = "recorder", "flight recorder of that torch"
    off = [setting for setting, value in here.variables.items() if value.strip() == "0"]
    if not here.torch:
        return VisibilityLine(name, title, "unused", "No torch was found.")
    if off:
        says = f"{off[0]}=0 in this environment switches it off."
        return VisibilityLine(name, title, "no", says, f"unset {' '.join(off)}")
    if _numbers(here.torch) < RECORDER_SINCE:
        says = f"torch {here.torch} has none; it came with 2.2."
        return VisibilityLine(name, title, "no", says, f"{here.python} -m pip install 'torch>=2.2'")
    if not here.nccl:
        says = "This torch has no NCCL, and only newer ones record the calls of gloo too."
        return VisibilityLine(name, title, "part", says, RECORDER_ON)
    if here.variables:
        told = " ".join(f"{key}={value}" for key, value in here.variables.items())
        return VisibilityLine(name, title, "yes", f"It is on: {told}.")
    says = "Whether it is on by itself depends on the version; a setting makes sure."
    return VisibilityLine(name, title, "part", says, RECORDER_ON)


def _ras(here: Visibility) -> VisibilityLine:
    name, title = "ras", "NCCL's RAS"
    if here.ras:
        return VisibilityLine(name, title, "yes", f"Somebody listens on port {here.ras_port}.")
    says = f"Nobody listens on port {here.ras_port}: no job with NCCL 2.24 or newer runs here."
    return VisibilityLine(name, title, "unused", says)


def _slurm(here: Visibility) -> VisibilityLine:
    name, title = "slurm", "nodes of SLURM jobs"
    if "srun" in here.programs:
        inside = f", in job {here.slurm_job}" if here.slurm_job else ""
        says = f"srun is {here.programs['srun']}{inside}: trainprobe attach --slurm JOB."
        return VisibilityLine(name, title, "yes", says)
    if here.slurm_job:
        says = f"This is job {here.slurm_job}, and there is no srun on PATH."
        remedy = f"srun --jobid={here.slurm_job} --overlap --pty trainprobe attach"
        return VisibilityLine(name, title, "no", says, remedy)
    return VisibilityLine(name, title, "unused", "There is no SLURM on PATH.")


def _kubectl(here: Visibility) -> VisibilityLine:
    name, title = "kubectl", "pods"
    path = here.programs.get("kubectl")
    if path is None:
        return VisibilityLine(name, title, "unused", "There is no kubectl on PATH.")
    if not here.kube:
        says = f"{path} knows no cluster: there is no KUBECONFIG and no ~/.kube/config."
        return VisibilityLine(name, title, "no", says, "kubectl config view")
    says = f"{path} knows a cluster by {here.kube}; whether it may exec there was not asked."
    return VisibilityLine(name, title, "part", says, "kubectl auth can-i create pods/exec")


def _ssh(here: Visibility) -> VisibilityLine:
    name, title = "ssh", "other hosts by ssh"
    path = here.programs.get("ssh")
    if path is None:
        return VisibilityLine(name, title, "unused", "There is no ssh on PATH.")
    says = f"ssh is {path}: trainprobe attach --hosts A,B. It asks for no password."
    return VisibilityLine(name, title, "yes", says)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("+", maxsplit=1)[0].split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else "It is not known why."
