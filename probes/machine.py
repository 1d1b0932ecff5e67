# /// trainprobe
# rung: 13
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Is this machine in order as its kernel tells it?
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: The kernel, the processors or the memory of this host are not as they should be.
# ///
"""Read what the kernel tells of itself and the hardware. Nothing is changed and no process is touched; standard library only.

Flags and environment: see _ready/checking.py. Events: checks, and `value` for what nodes should share.
"""

from __future__ import annotations

import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _memory import cgroup_folders, memory_limits, number, read  # isort: skip  # before _ready, which takes this folder off the path
from _machine import hardware, kernel, processes  # isort: skip
from _ready import checking  # isort: skip

LIMITS = {
    "limit.nofile": resource.RLIMIT_NOFILE,
    "limit.memlock_bytes": resource.RLIMIT_MEMLOCK,
    "limit.nproc": resource.RLIMIT_NPROC,
    "limit.as_bytes": resource.RLIMIT_AS,
    "limit.stack_bytes": resource.RLIMIT_STACK,
}
MANY_PROCESSES = 16384  # above it the kernel's own limit stands, which follows from the memory and differs a little between hosts of one kind


def killed(_asked: checking.Asked, told: checking.Told) -> None:
    kills = memory_limits().kills
    says = f"The kernel has killed {kills} process{'es' if kills != 1 else ''} of this cgroup for memory since it was made."
    told.say("host.oomkill", "warn" if kills else "ok", says, kills, fix="dmesg -T | grep -i oom; ask for more memory (--mem), or use fewer workers")


def values(asked: checking.Asked, _told: checking.Told) -> None:
    for name, which in LIMITS.items():
        soft = resource.getrlimit(which)[0]
        many = name == "limit.nproc" and not 0 <= soft < MANY_PROCESSES
        checking.value(name, f"{MANY_PROCESSES} or more" if many else "unlimited" if soft < 0 else str(soft))
    limits = memory_limits()
    checking.value("memory.limit_bytes", str(limits.limit) if limits.limit < hardware.meminfo(asked.root).get("MemTotal", 0) else "none")
    quotas = []
    for folder in cgroup_folders("cpu"):
        quota = read(f"{folder}/cpu.max").split() or [read(f"{folder}/cpu.cfs_quota_us").strip(), read(f"{folder}/cpu.cfs_period_us").strip()]
        quotas += [int(quota[0]) / int(quota[1])] if quota[0].isdigit() and quota[1].isdigit() else []
    checking.value("cpu_quota", f"{min(quotas):g}" if quotas else "none")
    pids = [found for folder in cgroup_folders("pids") for found in [number(folder, "pids.max")] if found]
    checking.value("pids.max", str(min(pids)) if pids else "none")
    kernel.limits(asked.root)


CHECKS = (
    checking.Check(("host.kernel",), kernel.version, checking.ADMIN),
    checking.Check(("host.uptime",), kernel.uptime, checking.ADMIN),
    checking.Check(("host.clock",), kernel.clock, checking.ADMIN),
    checking.Check(("host.governor",), hardware.governor, checking.ADMIN),
    checking.Check(("host.procstate",), processes.look, checking.ADMIN),
    checking.Check(("host.swap",), hardware.swap, checking.ADMIN),
    checking.Check(("host.memory",), hardware.reserved, checking.ADMIN),
    checking.Check(("host.oomkill",), killed),
    checking.Check(("host.thp",), hardware.huge_pages, checking.ADMIN),
    checking.Check(("host.numa",), hardware.numa, checking.ADMIN),
    checking.Check(("host.affinity",), hardware.affinity),
    checking.Check(("host.mce",), kernel.hardware, checking.ADMIN),
    checking.Check(("host.virt",), hardware.virtualisation, checking.ADMIN),
    checking.Check(("lim.sysctl",), kernel.settings, checking.ADMIN),
    checking.Check((), values),
)

if __name__ == "__main__":
    checking.make(CHECKS, __doc__ or "", "The machine is in order.")
