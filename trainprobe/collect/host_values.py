"""The host of a job as named values (facts/given.py). Unprivileged, below 1 s without GPUs."""

from __future__ import annotations

import json
import os
import platform
import resource
from typing import Dict, Mapping

from trainprobe.collect import cgroup, procfs
from trainprobe.collect.child_programs import HERE
from trainprobe.collect.collectors.gpus import read_gpus
from trainprobe.collect.versions_child import versions
from trainprobe.system.run import run
from trainprobe.targets.environment import VALUE_CAP, is_recordable

GPU_DEADLINE_S = 10.0
PYTHON_DEADLINE_S = 10.0
SHM = "/dev/shm"  # noqa: S108 - the mount that workers and NCCL share memory in
_LIMITS = (
    ("limit.nofile", resource.RLIMIT_NOFILE),
    ("limit.memlock_bytes", resource.RLIMIT_MEMLOCK),
    ("limit.nproc", resource.RLIMIT_NPROC),
    ("limit.as_bytes", resource.RLIMIT_AS),
    ("limit.stack_bytes", resource.RLIMIT_STACK),
)
_NVIDIA = ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg")
CHILD = os.path.join(HERE, "versions_child.py")


def host_values(python: str = "", environ: Mapping[str, str] = os.environ) -> Dict[str, str]:
    """Read all values that can be read, packages from `python` (by default ours)."""
    values: Dict[str, str] = {}
    for part in (_limits, _memory, _cpus, _kernel, _interfaces, _rdma, _gpus):
        try:
            values.update(part())
        except (OSError, ValueError):  # a /proc or /sys of another kind
            continue
    values.update({f"version.{name}": version for name, version in _versions(python).items()})
    for name, value in sorted(environ.items()):
        if is_recordable(name):
            values[f"env.{name}"] = value[:VALUE_CAP]
    return values


def _limits() -> Dict[str, str]:
    soft = {name: resource.getrlimit(which)[0] for name, which in _LIMITS}
    return {
        name: "unlimited" if value < 0 or value == resource.RLIM_INFINITY else str(value)
        for name, value in soft.items()
    }


def _memory() -> Dict[str, str]:
    values: Dict[str, str] = {}
    total = procfs.memory_bytes("MemTotal")
    if total is not None:
        values["memory.total_bytes"] = str(total)
    now = cgroup.snapshot(cgroup.find())
    if now is not None and now.limit_bytes is not None:
        values["memory.limit_bytes"] = str(now.limit_bytes)
    if now is not None and now.pids_max is not None:
        values["pids.max"] = str(now.pids_max)
    if now is not None and now.cpu_quota is not None:
        values["cpu_quota"] = f"{now.cpu_quota:g}"
    if os.path.isdir(SHM):
        shm = os.statvfs(SHM)
        values["shm.size_bytes"] = str(shm.f_blocks * shm.f_frsize)
        values["shm.free_bytes"] = str(shm.f_bavail * shm.f_frsize)
    return values


def _cpus() -> Dict[str, str]:
    """CPUs that this process may run on, which is what its children may."""
    return {"cpus": str(len(os.sched_getaffinity(0)))}


def _kernel() -> Dict[str, str]:
    return {"kernel": platform.release(), "platform": platform.platform()}


def _interfaces() -> Dict[str, str]:
    import socket

    import psutil

    found: Dict[str, str] = {}
    for name, addresses in psutil.net_if_addrs().items():
        answer = [
            each.address for each in addresses if each.family in (socket.AF_INET, socket.AF_INET6)
        ]
        answer.sort(key=lambda address: ":" in address)
        if answer:
            found[f"interface.{name}"] = answer[0].partition("%")[0]
    return found


def _rdma() -> Dict[str, str]:
    """`rdma.mlx5_0`: the state and kind of its first port."""
    found: Dict[str, str] = {}
    folder = "/sys/class/infiniband"
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        state, layer = (
            procfs.read_or_none(f"{folder}/{name}/ports/1/{what}") or ""
            for what in ("state", "link_layer")
        )
        found[f"rdma.{name}"] = " ".join(f"{state} {layer}".split()) or "unknown"
    return found


def _gpus() -> Dict[str, str]:
    if not any(os.path.exists(path) for path in _NVIDIA):
        return {}
    data = read_gpus(GPU_DEADLINE_S).data
    found = {
        "version.driver": str(data.get("driver") or ""),
        "version.cuda_driver": str(data.get("cuda_driver") or ""),
    }
    devices = data.get("devices") or []
    for device in devices:
        total = device.get("memory_total_bytes")
        found[f"gpu.{device['index']}"] = (
            f"{device['name']}, {total / 2**30:.0f} GiB"
            if total
            else device["name"] or device["error"]
        )
    if devices:
        found["gpus_per_node"] = str(len(devices))
    return {name: value for name, value in found.items() if value}


def _versions(python: str) -> Dict[str, str]:
    if not python:
        return versions()
    ran = run([python, "-B", CHILD], timeout_s=PYTHON_DEADLINE_S, cwd="/")
    if ran.ended.how != "exited" or ran.ended.code != 0:
        stderr = ran.stderr.decode("utf-8", "replace").strip()[-300:]
        raise PythonError(ran.ended.reason or stderr or f"it ended: {ran.ended.how}")
    try:
        answer = json.loads(ran.stdout)
    except ValueError as error:
        raise PythonError("it printed something else") from error
    rows = answer.items() if isinstance(answer, dict) else ()
    return {str(name): str(version) for name, version in rows}


class PythonError(Exception):
    """The named interpreter does not answer."""
