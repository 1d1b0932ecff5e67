"""What the values of one machine mean for a look at a job: each kind of look with yes, in part or
no, the reason, and what to type.
"""

from __future__ import annotations

from trainprobe.model.sight import Seen, Sight, SightLine

CAP_SYS_PTRACE = 19  # linux/capability.h
RECORDER_SINCE = (2, 2)
RECORDER_ON = "export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_TRACE_BUFFER_SIZE=20000"
LOOSEN = "sudo sysctl kernel.yama.ptrace_scope=0"
OTHERS_LOCKS = "sudo mount -o remount,hidepid=0 /proc"


def conclude(sight: Sight) -> tuple[SightLine, ...]:
    """Return one line for each kind of look, the most telling first."""
    return (
        _own_processes(sight),
        _others(sight),
        _py_spy(sight),
        _proc(sight),
        _kernel_log(sight),
        _cgroups(sight),
        _gpus(sight),
        _torch(sight),
        _recorder(sight),
        _ras(sight),
        _slurm(sight),
        _kubectl(sight),
        _ssh(sight),
    )


def _may_trace(sight: Sight) -> bool:
    try:
        return bool(int(sight.capabilities or "0", 16) >> CAP_SYS_PTRACE & 1)
    except ValueError:
        return False


def _own_processes(sight: Sight) -> SightLine:
    name, title = "stacks", "stacks of your own jobs"
    if sight.dump.outcome == "ok":
        where = f"; this is {sight.container}" if sight.container else ""
        scope = "there is no Yama" if sight.yama is None else f"ptrace_scope is {sight.yama}"
        says = f"A process of {sight.user} was looked into ({scope}{where})."
        return SightLine(name, title, "yes", says)
    if sight.yama in (1, 2) and not _may_trace(sight):
        remedy = LOOSEN
    elif sight.container and not _may_trace(sight):
        remedy = "docker run --cap-add SYS_PTRACE IMAGE"
        if "Kubernetes" in sight.container:
            remedy = "kubectl explain pod.spec.containers.securityContext.capabilities.add"
    elif not sight.py_spy:
        remedy = "pip install py-spy"
    else:
        remedy = "sudo trainprobe attach"
    return SightLine(name, title, "no", _sentence(sight.dump.reason), remedy)


def _others(sight: Sight) -> SightLine:
    name, title = "others", "stacks of other users' jobs"
    if sight.uid == 0 and _may_trace(sight):
        return SightLine(name, title, "yes", "We are root and hold SYS_PTRACE.")
    if _may_trace(sight):
        return SightLine(name, title, "yes", f"{sight.user} holds SYS_PTRACE.")
    why = "root without the capability SYS_PTRACE" if sight.uid == 0 else sight.user
    remedy = "sudo trainprobe attach" if sight.uid else "docker run --cap-add SYS_PTRACE IMAGE"
    return SightLine(name, title, "no", f"We are {why}; only the own jobs can be seen.", remedy)


def _py_spy(sight: Sight) -> SightLine:
    name, title = "py-spy", "py-spy"
    if not sight.py_spy:
        return SightLine(name, title, "no", _sentence(sight.no_py_spy), "pip install py-spy")
    version = sight.dump.found.removeprefix("py-spy ")
    return SightLine(name, title, "yes", f"{version or 'It'} is {sight.py_spy}.")


def _proc(sight: Sight) -> SightLine:
    name, title = "proc", "processes in /proc"
    if sight.hidepid in ("", "0", "off"):
        return SightLine(name, title, "yes", "/proc shows the processes of all users.")
    says = f"/proc is mounted with hidepid={sight.hidepid}: holders of locks and neighbours of"
    if sight.uid == 0:
        return SightLine(name, title, "yes", f"{says} other users stay visible to root.")
    return SightLine(name, title, "part", f"{says} other users stay unknown.", OTHERS_LOCKS)


def _kernel_log(sight: Sight) -> SightLine:
    name, title = "kernel-log", "kernel log"
    look = sight.kernel_log
    if look.outcome == "ok":
        says = f"{look.found} tells of kills for memory, crashes and GPU errors (Xid)."
        return SightLine(name, title, "yes", says)
    if look.outcome == "denied":
        remedy = "sudo sysctl kernel.dmesg_restrict=0"
        return SightLine(name, title, "no", "It is closed to us.", remedy)
    remedy = "dmesg | tail -100   on the host, and: trainprobe explain FILE"
    return SightLine(name, title, "no", _sentence(look.reason), remedy)


def _cgroups(sight: Sight) -> SightLine:
    name, title = "cgroups", "limits of memory, CPUs and processes"
    by_version: dict[int, list[str]] = {}
    for controller, version in sight.cgroups.items():
        by_version.setdefault(version, []).append(controller)
    told = "; ".join(
        f"cgroup v{version}: {', '.join(sorted(names))}"
        for version, names in sorted(by_version.items())
    )
    if "memory" in sight.cgroups:
        return SightLine(name, title, "yes", f"{told}.")
    says = f"{told}, and no memory controller." if told else "No cgroup can be read here."
    return SightLine(name, title, "part" if told else "no", says, "mount | grep cgroup")


def _gpus(sight: Sight) -> SightLine:
    name, title = "gpus", "GPUs (NVML)"
    look = sight.gpus
    if look.outcome == "ok":
        return SightLine(name, title, "yes", f"{look.found}.")
    if look.outcome == "unavailable":
        remedy = "nvidia-smi" if sight.cuda else ""
        seen: Seen = "no" if sight.cuda else "unused"
        return SightLine(name, title, seen, _sentence(look.reason), remedy)
    return SightLine(name, title, "part", _sentence(look.reason), "nvidia-smi")


def _torch(sight: Sight) -> SightLine:
    name, title = "torch", "torch, for probes and demo"
    if not sight.torch:
        remedy = f"{sight.python or 'python3'} -m pip install torch"
        return SightLine(name, title, "no", _sentence(sight.no_torch), remedy)
    build = f"CUDA {sight.cuda}" if sight.cuda else "CPU build"
    says = f"{sight.torch} ({build}) in {sight.python}, Python {sight.python_version}."
    return SightLine(name, title, "yes", says)


def _recorder(sight: Sight) -> SightLine:
    name, title = "recorder", "flight recorder of that torch"
    off = [setting for setting, value in sight.variables.items() if value.strip() == "0"]
    if not sight.torch:
        return SightLine(name, title, "unused", "No torch was found.")
    if off:
        says = f"{off[0]}=0 in this environment switches it off."
        return SightLine(name, title, "no", says, f"unset {' '.join(off)}")
    if _numbers(sight.torch) < RECORDER_SINCE:
        says = f"torch {sight.torch} has none; it came with 2.2."
        return SightLine(name, title, "no", says, f"{sight.python} -m pip install 'torch>=2.2'")
    if not sight.nccl:
        says = "This torch has no NCCL, and only newer ones record the calls of gloo too."
        return SightLine(name, title, "part", says, RECORDER_ON)
    if sight.variables:
        told = " ".join(f"{key}={value}" for key, value in sight.variables.items())
        return SightLine(name, title, "yes", f"It is on: {told}.")
    says = "Whether it is on by itself depends on the version; a setting makes sure."
    return SightLine(name, title, "part", says, RECORDER_ON)


def _ras(sight: Sight) -> SightLine:
    name, title = "ras", "NCCL's RAS"
    if sight.ras:
        return SightLine(name, title, "yes", f"Somebody listens on port {sight.ras_port}.")
    says = f"Nobody listens on port {sight.ras_port}: no job with NCCL 2.24 or newer runs here."
    return SightLine(name, title, "unused", says)


def _slurm(sight: Sight) -> SightLine:
    name, title = "slurm", "nodes of SLURM jobs"
    if "srun" in sight.programs:
        inside = f", in job {sight.slurm_job}" if sight.slurm_job else ""
        says = f"srun is {sight.programs['srun']}{inside}: trainprobe attach --slurm JOB."
        return SightLine(name, title, "yes", says)
    if sight.slurm_job:
        says = f"This is job {sight.slurm_job}, and there is no srun on PATH."
        remedy = f"srun --jobid={sight.slurm_job} --overlap --pty trainprobe attach"
        return SightLine(name, title, "no", says, remedy)
    return SightLine(name, title, "unused", "There is no SLURM on PATH.")


def _kubectl(sight: Sight) -> SightLine:
    name, title = "kubectl", "pods"
    path = sight.programs.get("kubectl")
    if path is None:
        return SightLine(name, title, "unused", "There is no kubectl on PATH.")
    if not sight.kube:
        says = f"{path} knows no cluster: there is no KUBECONFIG and no ~/.kube/config."
        return SightLine(name, title, "no", says, "kubectl config view")
    says = f"{path} knows a cluster by {sight.kube}; whether it may exec there was not asked."
    return SightLine(name, title, "part", says, "kubectl auth can-i create pods/exec")


def _ssh(sight: Sight) -> SightLine:
    name, title = "ssh", "other hosts by ssh"
    path = sight.programs.get("ssh")
    if path is None:
        return SightLine(name, title, "unused", "There is no ssh on PATH.")
    says = f"ssh is {path}: trainprobe attach --hosts A,B. It asks for no password."
    return SightLine(name, title, "yes", says)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("+", maxsplit=1)[0].split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else "It is not known why."
