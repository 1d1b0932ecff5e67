# /// trainprobe
# rung: 13
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Is this machine in order, according to its kernel?
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: The kernel, the processors or the memory of this host are not as they should be.
# ///
"""Read what the kernel tells of itself and the hardware. Nothing is changed and no process is
touched; standard library only.

Flags and environment: see `_shared/checks.py`. Events: checks, and `value` for what nodes should
share.
"""

from __future__ import annotations

import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _machine import hardware, kernel, processes
from _shared import checks
from _shared.memory import cgroup_folders, memory_limits, number
from _shared.proc import read_text

LIMITS = {
    "limit.nofile": resource.RLIMIT_NOFILE,
    "limit.memlock_bytes": resource.RLIMIT_MEMLOCK,
    "limit.nproc": resource.RLIMIT_NPROC,
    "limit.as_bytes": resource.RLIMIT_AS,
    "limit.stack_bytes": resource.RLIMIT_STACK,
}
# above it the kernel's own limit stands, which follows from the memory and differs a little between
# hosts of one kind
MANY_PROCESSES = 16384


def killed(_launch: checks.Launch, results: checks.Results) -> None:
    kills = memory_limits().kills
    sentence = (
        f"The kernel has killed {kills} process{'es' if kills != 1 else ''} of this cgroup for"
        " memory since it was made."
    )
    fix = "dmesg -T | grep -i oom; ask for more memory (--mem), or use fewer workers"
    results.add("host.oomkill", "warn" if kills else "ok", sentence, kills, fix=fix)


def values(launch: checks.Launch, _results: checks.Results) -> None:
    for name, which in LIMITS.items():
        soft = resource.getrlimit(which)[0]
        many = name == "limit.nproc" and not 0 <= soft < MANY_PROCESSES
        checks.value(
            name, f"{MANY_PROCESSES} or more" if many else "unlimited" if soft < 0 else str(soft)
        )
    limits = memory_limits()
    checks.value(
        "memory.limit_bytes",
        (
            str(limits.limit)
            if limits.limit < hardware.meminfo(launch.root).get("MemTotal", 0)
            else "none"
        ),
    )
    quotas = []
    for folder in cgroup_folders("cpu"):
        quota = read_text(f"{folder}/cpu.max").split() or [
            read_text(f"{folder}/cpu.cfs_quota_us").strip(),
            read_text(f"{folder}/cpu.cfs_period_us").strip(),
        ]
        quotas += (
            [int(quota[0]) / int(quota[1])] if quota[0].isdecimal() and quota[1].isdecimal() else []
        )
    checks.value("cpu_quota", f"{min(quotas):g}" if quotas else "none")
    pids = [
        found
        for folder in cgroup_folders("pids")
        for found in [number(folder, "pids.max")]
        if found
    ]
    checks.value("pids.max", str(min(pids)) if pids else "none")
    kernel.limits(launch.root)


CHECKS = (
    checks.Check(("host.kernel",), kernel.version, checks.ADMIN),
    checks.Check(("host.uptime",), kernel.uptime, checks.ADMIN),
    checks.Check(("host.clock",), kernel.clock, checks.ADMIN),
    checks.Check(("host.governor",), hardware.governor, checks.ADMIN),
    checks.Check(("host.procstate",), processes.look, checks.ADMIN),
    checks.Check(("host.swap",), hardware.swap, checks.ADMIN),
    checks.Check(("host.memory",), hardware.reserved, checks.ADMIN),
    checks.Check(("host.oomkill",), killed),
    checks.Check(("host.thp",), hardware.huge_pages, checks.ADMIN),
    checks.Check(("host.numa",), hardware.numa, checks.ADMIN),
    checks.Check(("host.affinity",), hardware.affinity),
    checks.Check(("host.mce",), kernel.hardware, checks.ADMIN),
    checks.Check(("host.virt",), hardware.virtualisation, checks.ADMIN),
    checks.Check(("lim.sysctl",), kernel.settings, checks.ADMIN),
    checks.Check((), values),
)

if __name__ == "__main__":
    checks.run(CHECKS, __doc__ or "", "The machine is in order.")
