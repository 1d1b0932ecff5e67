"""Finds processes that cannot be ended: unreaped zombies and uninterruptible sleepers."""

from __future__ import annotations

import os
import re
import time
from typing import Dict, Iterator, List, NamedTuple

from _shared import checks, kernel_files

TICKS = os.sysconf("SC_CLK_TCK")
LOOK_AGAIN_S = 0.4
OLD_S = 300.0  # gcm's level
MANY_ZOMBIES = 20
MOST = 20000
# Functions of the kernel in which a process waits for a driver or a file system of the network.
SUSPECT = re.compile(
    r"nvidia|^nv_|uvm_|^_nv\d|nfs|rpc_|lustre|^ll_|^cl_|^osc_|ptlrpc|fuse|request_wait_answer"
    r"|ceph|mmfs|gpfs|beegfs|dax_|blk_|io_schedule|wait_on_page"
)


class StuckProcess(NamedTuple):
    """`age_s` since its start; `switches` counts how often it ran."""

    pid: int
    ppid: int
    name: str
    state: str
    age_s: float
    switches: int


def table(root: str) -> Iterator[StuckProcess]:
    """User processes in state Z or D; a kernel thread has no command line and parent 2."""
    uptime = float((kernel_files.line(root, "/proc/uptime").split() or ["0"])[0])
    for entry in sorted(os.listdir(kernel_files.below(root, "/proc")))[:MOST]:
        text = kernel_files.read(root, f"/proc/{entry}/stat") if entry.isdecimal() else ""
        fields = text.rpartition(")")[2].split()
        if len(fields) > 19 and fields[0] in "ZD" and fields[1] != "2":
            counted = re.findall(
                r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)",
                kernel_files.read(root, f"/proc/{entry}/status"),
                re.MULTILINE,
            )
            name = text[text.find("(") + 1 : text.rfind(")")]
            yield StuckProcess(
                int(entry),
                int(fields[1]),
                name[:40],
                fields[0],
                uptime - int(fields[19]) / TICKS,
                sum(map(int, counted)),
            )


def elsewhere(root: str, pid: int) -> bool:
    """Whether it lives among other mounts (another container). Where that is unknown it is ours."""
    try:
        return os.readlink(kernel_files.below(root, f"/proc/{pid}/ns/mnt")) != os.readlink(
            kernel_files.below(root, "/proc/self/ns/mnt")
        )
    except OSError:
        return False


def look(launch: checks.Launch, results: checks.Results) -> None:
    """Look twice, and report the processes that did not run between the looks."""
    oldest_s = results.threshold("host.procstate", OLD_S)
    before = {item.pid: item for item in table(launch.root)}
    stuck: List[Dict[str, object]] = []
    if any(item.state == "D" for item in before.values()):
        time.sleep(LOOK_AGAIN_S)
        for item in table(launch.root):
            earlier = before.get(item.pid)
            if (
                item.state == "D"
                and earlier
                and earlier.state == "D"
                and earlier.switches == item.switches
                and not elsewhere(launch.root, item.pid)
            ):
                where = kernel_files.line(launch.root, f"/proc/{item.pid}/wchan")
                stuck.append(
                    {
                        "pid": item.pid,
                        "name": item.name,
                        "wchan": "" if where == "0" else where,
                        "suspect": bool(SUSPECT.search(where)),
                    }
                )
    zombies = [
        item
        for item in before.values()
        if item.state == "Z" and item.age_s > oldest_s and not elsewhere(launch.root, item.ppid)
    ]
    parents = sorted({item.ppid for item in zombies})[:10]
    sentence = [
        f"pid {item['pid']} ({item['name']}) sleeps uninterruptibly in"
        f" {item['wchan'] or 'the kernel'}"
        for item in stuck[:5]
    ]
    sentence += (
        [
            (
                f"{len(zombies)} zombies that their parents (pids {' '.join(map(str, parents))}) "
                f"do not"
                " reap"
            )
        ]
        if len(zombies) > MANY_ZOMBIES
        else []
    )
    fix = (
        "look at the mount or driver named by `cat /proc/PID/stack` as root; drain the node, such a"
        " process ends with a reboot only"
    )
    value = {"stuck": stuck[:20], "zombies": len(zombies)}
    results.add(
        "host.procstate",
        "warn" if sentence else "ok",
        f"Stuck processes: {'; '.join(sentence) or 'none'}.",
        value,
        fix=fix,
        threshold=f"older than {oldest_s:g} s",
    )
