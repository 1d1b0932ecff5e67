"""What a planned launch asks of the limits beyond one rank's need: open files for a world of
several nodes, locked memory for RDMA, CPUs by quota.

The launch is told by TRAINPROBE_WORLD (ranks in all) and TRAINPROBE_NODES (names, by commas);
thresholds of the site by TRAINPROBE_THRESHOLDS.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Iterator, Optional, Tuple

from _shared import checks
from _shared.memory import cgroup_folders
from _shared.proc import read_text

MIB = 2**20
# 1024, most systems' own limit, is known to fail from 4 nodes of 8 ranks on: NVIDIA/nccl#550,
# goodfire-ai/spd#957
ALONE, SEVERAL, LARGE = 64, 1024, 1025


def planned() -> Tuple[int, int]:
    """(ranks in all, nodes); 0 and 1 where the launch is not known."""
    world = os.environ.get("TRAINPROBE_WORLD", "")
    return int(world) if world.isdecimal() else 0, max(1, len(checks.planned_nodes()))


def threshold(check: str, default: float) -> float:
    """The site's threshold for this check, else ours."""
    return checks.thresholds().get(check, default)


def least_files() -> int:
    """The open files that the planned world needs, for peers of groups and shared batches."""
    world, nodes = planned()
    return int(
        threshold(
            "lim.nofile", LARGE if world > 32 else SEVERAL if world > 8 or nodes > 1 else ALONE
        )
    )


def usual_memlock() -> int:
    """What old systems and Docker give (64 KiB); the limit matters only with RDMA."""
    return 64 * 1024 + 1 if planned()[1] > 1 else 0


def active_rdma(root: str = "") -> bool:
    """Whether memory will be locked: InfiniBand, or RoCE with GPUs (only NCCL uses it)."""
    gpus = bool(glob.glob(f"{root}/dev/nvidia[0-9]*"))
    ports = [
        os.path.dirname(path)
        for path in glob.glob(f"{root}/sys/class/infiniband/*/ports/*/state")
        if "ACTIVE" in read_text(path)
    ]
    return any(gpus or "InfiniBand" in read_text(f"{port}/link_layer") for port in ports)


def least_shm(nproc: int) -> int:
    """Bytes of shared memory: Docker's default; with several GPUs DeepSpeed's minimum, 512 MiB."""
    return int(
        threshold(
            "shm.size", 512 * MIB if nproc > 1 and glob.glob("/dev/nvidia[0-9]*") else 64 * MIB
        )
    )


def quota(nproc: int) -> Iterator[checks.Row]:
    """The least quota of CPU time up the tree, and how often it stopped us."""
    found: Optional[float] = None
    stopped = ""
    for folder in cgroup_folders("cpu"):
        fields = read_text(f"{folder}/cpu.max").split() or [
            read_text(f"{folder}/cpu.cfs_quota_us").strip(),
            read_text(f"{folder}/cpu.cfs_period_us").strip(),
        ]
        if len(fields) > 1 and fields[0].isdecimal() and fields[1].isdecimal() and int(fields[1]):
            share = int(fields[0]) / int(fields[1])
            if found is None or share < found:
                counts = dict(
                    re.findall(
                        r"^(nr_periods|nr_throttled) (\d+)",
                        read_text(f"{folder}/cpu.stat"),
                        re.MULTILINE,
                    )
                )
                periods = int(counts.get("nr_periods", 0))
                stopped = (
                    f"; it has stopped us in {int(counts.get('nr_throttled', 0)) / periods:.0%} of"
                    f" {periods} periods"
                    if periods > 20
                    else ""
                )
                found = share
    if found is None:
        yield "lim.cgcpu", "ok", None, "No cgroup limits the CPU time.", ""
        return
    each, usable = threshold("lim.cgcpu", 1.0), len(os.sched_getaffinity(0))
    # on the ladder ranks are few and short, and lim.cpus warns
    launched = bool(os.environ.get("TRAINPROBE_SLOT"))
    status = (
        "fail"
        if found < nproc * each and launched
        else "warn"
        if found < nproc * each or found < usable
        else "ok"
    )
    sentence = (
        f"A cgroup allows {found:g} CPUs of {usable} to {nproc}"
        f" rank{'s' if nproc != 1 else ''}{stopped}."
    )
    fix = (
        "ask for more CPUs (--cpus-per-task), docker run --cpus=N, or resources.limits.cpu; the"
        " quota stops all threads at once"
    )
    yield "lim.cgcpu", status, [found, usable], sentence, fix
