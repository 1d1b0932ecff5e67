# /// trainprobe
# rung: 10
# ready: quick
# slots: [step, taskprolog]
# question: Do this host's limits, memory and disk allow the run?
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: A limit, the memory or a disk of this host is too small for the run. Ranks would die or
#   stall on it whatever the script does.
# ///
"""Read what the kernel and the environment say about this host. Nothing is changed; standard
library only.

Environment: TRAINPROBE_NPROC (ranks on this host, 1), TRAINPROBE_SCRIPT (leftovers of it are looked
for), OMP_NUM_THREADS, TMPDIR, MASTER_PORT.
Flags: --nproc N, --script PATH. Events: one `note` or `fail` for each check: check, status
(ok|warn|fail|unknown), value, says, fix.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import resource
import socket
import sys
from typing import Iterator, List

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _host import earlier_runs, launch_limits
from _shared import checks
from _shared.memory import cgroup_folders, number
from _shared.proc import read_text

MIB, GIB, SHM = 2**20, 2**30, "/dev/shm"  # noqa: S108 - the place that is measured
# measured: `import torch` (2.13, CPU build) holds 230 MiB, a gloo rank 260 MiB
RANK_BYTES = 300 * MIB
# Limits: the least that works at all, the least without a warning, both in the limit's own unit;
# sources behind each.
LIMITS = {
    # a rank needs 30-60; 1024 fails from 4 nodes on: NVIDIA/nccl#550, goodfire-ai/spd#957
    "nofile": (resource.RLIMIT_NOFILE, 64, 1025, "ulimit -n 65536"),
    # AWS warns below 16 GiB; it matters with InfiniBand only (NCCL's documentation)
    "memlock": (resource.RLIMIT_MEMLOCK, 0, 16 * GIB, "ulimit -l unlimited"),
    # CUDA reserves address space for the sum of all memories
    "as": (resource.RLIMIT_AS, 2 * GIB, 2**62, "ulimit -v unlimited"),
    "stack": (resource.RLIMIT_STACK, 0, MIB, "ulimit -s 8192"),
    "core": (resource.RLIMIT_CORE, 0, 0, ""),
}
DEBUGGING = "a debugging switch that NCCL's documentation says not to keep"
LEFT_OVER = "left over from a launcher: a script started by hand would take itself for a rank"
# Variables that bite: the pattern of values that do, and why.
BITING = {
    "CUDA_LAUNCH_BLOCKING": ("[^0]", "every kernel launch waits, which is slow"),
    "TORCH_DISTRIBUTED_DEBUG": (
        "(?i)detail",
        "every collective is first checked over gloo, which is slow and can itself hang",
    ),
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": (
        "[^0]",
        "a rank with a device fault waits for a debugger for ever",
    ),
    "CUDA_INJECTION64_PATH": (".", "a profiler is loaded into every rank"),
    "LD_PRELOAD": (".", "a library is loaded into every process"),
    "PYTHONPATH": (".", "its folders come before the installed packages"),
    "PYTHONHOME": (".", "it points Python at another installation"),
    **{
        f"NCCL_{name}": (".", f"an old name: newer torch reads TORCH_NCCL_{name}")
        for name in ("BLOCKING_WAIT", "ASYNC_ERROR_HANDLING")
    },
    **{f"NCCL_{name}_DISABLE": ("[^0]", DEBUGGING) for name in ("P2P", "SHM", "IB")},
    **{
        f"NCCL_{name}": (".", DEBUGGING)
        for name in (
            "ALGO",
            "PROTO",
            "P2P_LEVEL",
            "NET_GDR_LEVEL",
            "BUFFSIZE",
            "NTHREADS",
            "LAUNCH_MODE",
        )
    },
    **dict.fromkeys(("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"), (".", LEFT_OVER)),
}


def size(count: float) -> str:
    return (
        "unlimited"
        if count < 0
        else f"{count / GIB:.1f} GiB"
        if count >= GIB
        else f"{count / MIB:.0f} MiB"
    )


def level(value: float, least: float, good: float) -> str:
    return "fail" if value < least else "warn" if value < good else "ok"


def limits() -> Iterator[checks.Row]:
    for name, (which, usual, roomy, fix) in LIMITS.items():
        soft, hard = resource.getrlimit(which)
        locks = name == "memlock" and launch_limits.active_rdma()
        least = (
            launch_limits.least_files()
            if name == "nofile"
            else launch_limits.threshold("lim.memlock", GIB)
            if locks
            else usual
        )
        good = max(least, roomy) if name != "memlock" or locks else launch_limits.usual_memlock()
        status = "ok" if soft < 0 else level(soft, least, good)
        sentence = f"Limit {name}: soft {soft}, hard {hard} (-1 is unlimited)."
        yield f"lim.{name}", status, [soft, hard], sentence, fix
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    shares = [
        (number(folder, "pids.current") or 0) / (number(folder, "pids.max") or 2**60)
        for folder in cgroup_folders("pids")
    ]
    if soft > 0 and os.getuid() != 0:  # the limit counts this user's threads; root is exempt
        shares.append(sum(len(glob.glob(f"/proc/{pid}/task/*")) for pid in processes()) / soft)
    share = max(shares, default=0.0)  # the two levels are gpud's
    status = level(-share, -0.95, -0.8)
    sentence = f"Processes and threads: {share:.0%} of the limit is in use."
    yield "lim.nproc", status, [soft, round(share, 3)], sentence, "ulimit -u 65536"


def memory(nproc: int) -> Iterator[checks.Row]:
    need, roomy = nproc * RANK_BYTES, nproc * GIB
    found = re.search(r"MemAvailable:\s+(\d+)", read_text("/proc/meminfo"))
    free = int(found.group(1)) * 1024 if found else None
    sentence = (
        f"Memory available: {size(free or 0)}; {nproc} ranks need {size(need)} for their imports"
        " alone."
    )
    status = level(free, need, roomy) if free is not None else "unknown"
    yield "mem.available", status, free, sentence, "end what holds the memory, or use fewer ranks"
    limited = False
    for folder in cgroup_folders("memory"):
        limit = number(folder, "memory.max") or number(folder, "memory.limit_in_bytes")
        used = number(folder, "memory.current") or number(folder, "memory.usage_in_bytes")
        if limit is not None and used is not None:
            cache = re.findall(
                r"^(?:total_)?(?:in)?active_file (\d+)$",
                read_text(f"{folder}/memory.stat"),
                re.MULTILINE,
            )
            limited = True
            # the page cache is given back; v1's last two lines are the hierarchy's
            room = limit - used + min(used, sum(map(int, cache[-2:])))
            sentence = (
                f"A cgroup limits the memory to {size(limit)}, of which {size(room)} is left."
            )
            status = level(room, need, max(roomy, limit // 5))
            fix = "raise --mem of the job or the container's limit, or use fewer ranks"
            yield "lim.cgmem", status, [limit, room], sentence, fix
    if not limited:
        yield "lim.cgmem", "ok", None, "No cgroup limits the memory.", ""


def disks() -> Iterator[checks.Row]:
    with _emit.phase("statvfs:/dev/shm"):
        shm = os.statvfs(SHM) if os.path.isdir(SHM) else None
    total, free = (shm.f_blocks * shm.f_frsize, shm.f_bavail * shm.f_frsize) if shm else (0, 0)
    least = launch_limits.least_shm(_emit.number_from_environment("TRAINPROBE_NPROC", 1, 1))
    # below 512 MB ds_report warns; Docker's default is 64 MB
    status = "fail" if free < MIB or total < least else "ok" if total >= 512 * MIB else "warn"
    fix = "docker run --shm-size=1g or --ipc=host; on Kubernetes an emptyDir with medium Memory"
    yield "shm.size", status, [total, free], f"{SHM}: {size(total)}, {size(free)} free.", fix
    places = {
        "cwd": os.getcwd(),
        "TMPDIR": (os.environ.get("TMPDIR") or "/tmp"),  # noqa: S108 - the place that Python takes too
        "cache": os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
    }
    places.update(
        {
            name: os.environ[name]
            for name in (
                "HF_HOME",
                "TORCH_HOME",
                "TRITON_CACHE_DIR",
                "TORCHINDUCTOR_CACHE_DIR",
                "CUDA_CACHE_PATH",
            )
            if os.environ.get(name)
        }
    )
    for name, folder in places.items():
        # a file system that does not answer hangs here, with its name said
        with _emit.phase(f"statvfs:{folder}"):
            there = folder
            while not os.path.isdir(there) and there not in ("/", ""):
                there = os.path.dirname(there)
            disk = os.statvfs(there or ".")
        free = disk.f_bavail * disk.f_frsize
        full = (
            free < 64 * MIB
            or (disk.f_files > 0 and disk.f_favail == 0)
            or (name != "cache" and not os.access(there or ".", os.W_OK))
        )
        used = 1 - disk.f_bavail / disk.f_blocks if disk.f_blocks else 0.0
        # 95 % is imbue's level
        status = (
            "fail"
            if full and name == "TMPDIR"
            else "warn"
            if full or (used >= 0.95 and free < 10 * GIB)
            else "ok"
        )
        sentence = (
            f"{name} {folder}: {size(free)} free, {disk.f_favail} inodes,"
            f" {'writable' if os.access(there or '.', os.W_OK) else 'not writable'}."
        )
        fix = "free space there, or point it elsewhere"
        yield "fs.space", status, [folder, free], sentence, fix


def cpus(nproc: int) -> Iterator[checks.Row]:
    usable = float(len(os.sched_getaffinity(0)))  # the kernel has already cut it to the cpuset
    for folder in cgroup_folders("cpu"):
        quota = read_text(f"{folder}/cpu.max").split() or [
            read_text(f"{folder}/cpu.cfs_quota_us").strip(),
            read_text(f"{folder}/cpu.cfs_period_us").strip(),
        ]
        if quota[0].isdecimal():  # otherwise "max" or -1
            usable = min(usable, int(quota[0]) / int(quota[1]))
    threads = os.environ.get("OMP_NUM_THREADS", "")
    # torchrun sets 1 when it is unset and there are several ranks
    each = int(threads) if threads.isdecimal() else 1
    sentence = (
        f"CPUs usable: {usable:g} of {os.cpu_count()} for {nproc} ranks with {each} OpenMP"
        f" thread{'' if each == 1 else 's'} each."
    )
    status = "warn" if nproc * each > usable else "ok"
    fix = (
        "start fewer ranks here, or ask for more CPUs"
        if each == 1
        else (
            f"export OMP_NUM_THREADS={max(1, int(usable // nproc))}, or ask for more CPUs per task"
        )
    )
    yield "lim.cpus", status, [usable, nproc * each], sentence, fix


def processes() -> List[int]:
    mine = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdecimal() and os.stat(f"/proc/{entry}").st_uid == os.getuid():
                mine.append(int(entry))
    return mine


def leftovers(script: str) -> Iterator[checks.Row]:
    """Find older processes of this user with the same script that no one supervises."""
    left, live = earlier_runs.find(script)
    found = [
        {"pid": item.pid, "ppid": item.ppid, "command": " ".join(item.argv)[:200]} for item in left
    ]
    pids = " ".join(str(item.pid) for item in left)
    sentence = (
        f"Processes of an earlier run of {os.path.basename(script)}:"
        f" {f'{len(left)} (pids {pids})' if left else 'none'}."
    )
    yield "host.leftovers", "warn" if left else "ok", found, sentence, f"kill {pids}"
    if live:
        sentence = (
            f"Another run of {os.path.basename(script)} is live (pid {live[0].pid}) and supervised:"
            " it is no left-over."
        )
        fix = f"ps -o pid,ppid,tty,lstart,cmd -p {live[0].pid}"
        yield "host.other-run", "warn", [item.pid for item in live], sentence, fix


def environment() -> Iterator[checks.Row]:
    # inside the user's own launch its variables are meant
    launched = bool(os.environ.get("TRAINPROBE_SLOT"))
    bites = [
        name
        for name, (pattern, _) in BITING.items()
        if re.match(pattern, os.environ.get(name, ""))
        and not (launched and BITING[name][1] is LEFT_OVER)
    ]
    for name in bites:
        sentence = f"{name}={os.environ[name]} is set: {BITING[name][1]}."
        yield f"env.{name}", "warn", os.environ[name], sentence, f"unset {name}"
    if not bites:
        yield "env", "ok", len(BITING), f"None of {len(BITING)} harmful variables is set.", ""
    port = os.environ.get("MASTER_PORT", "")
    if port.isdecimal() and 0 < int(port) < 65536:
        with contextlib.closing(socket.socket()) as listener:
            # as torch's store does: a port in TIME_WAIT is free
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken = False
            try:
                listener.bind(("", int(port)))
            except OSError:
                taken = True
        status = "warn" if taken else "ok"
        sentence = f"MASTER_PORT={port} is {'taken by another process' if taken else 'free'}."
        yield "plan.port", status, int(port), sentence, "export MASTER_PORT with another number"


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.number("--nproc", "TRAINPROBE_NPROC", 1, 1)
    parser.text("--script", "TRAINPROBE_SCRIPT")
    asked = parser.parse_args()
    groups = {"limits": limits(), "memory": memory(asked.nproc), "cpus": cpus(asked.nproc)}
    groups.update({"quota": launch_limits.quota(asked.nproc), "environment": environment()})
    groups.update({"leftovers": leftovers(asked.script)} if asked.script else {})
    groups["disks"] = disks()  # last: a file system that does not answer takes nothing else with it
    failed = [check for check, status, *_ in checks.report(groups) if status == "fail"]
    if failed:
        _emit.result("no", f"This host does not allow the run: {', '.join(failed)}.")
    _emit.result("yes", "Limits, memory and disk allow the run.")


if __name__ == "__main__":
    main()
