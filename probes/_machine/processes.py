"""Processes that no longer do anything and cannot be ended: zombies that nobody reaps, and those that sleep uninterruptibly."""

from __future__ import annotations

import os
import re
import time
from typing import Dict, Iterator, List, NamedTuple

from _ready import checking, places

TICKS = os.sysconf("SC_CLK_TCK")
LOOK_AGAIN_S = 0.4
OLD_S = 300.0  # gcm's level
MANY_ZOMBIES = 20
MOST = 20000
# Functions of the kernel in which a process waits for a driver or a file system of the network.
SUSPECT = re.compile(
    r"nvidia|^nv_|uvm_|^_nv\d|nfs|rpc_|lustre|^ll_|^cl_|^osc_|ptlrpc|fuse|request_wait_answer|ceph|mmfs|gpfs|beegfs|dax_|blk_|io_schedule|wait_on_page"
)


class One(NamedTuple):
    """`age_s` is since its start; `switches` counts how often it ran, so that one that stands still is told from one that only sleeps often."""

    pid: int
    ppid: int
    name: str
    state: str
    age_s: float
    switches: int


def table(root: str) -> Iterator[One]:
    """Those in state Z or D, user processes only (a kernel thread has no command line and parent 2)."""
    uptime = float((places.line(root, "/proc/uptime").split() or ["0"])[0])
    for entry in sorted(os.listdir(places.below(root, "/proc")))[:MOST]:
        text = places.read(root, f"/proc/{entry}/stat") if entry.isdigit() else ""
        fields = text.rpartition(")")[2].split()
        if len(fields) > 19 and fields[0] in "ZD" and fields[1] != "2":
            counted = re.findall(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)", places.read(root, f"/proc/{entry}/status"), re.MULTILINE)
            name = text[text.find("(") + 1 : text.rfind(")")]
            yield One(int(entry), int(fields[1]), name[:40], fields[0], uptime - int(fields[19]) / TICKS, sum(map(int, counted)))


def elsewhere(root: str, pid: int) -> bool:
    """Whether it lives among other mounts than we do: another container's. Where that is not told it may be ours."""
    try:
        return os.readlink(places.below(root, f"/proc/{pid}/ns/mnt")) != os.readlink(places.below(root, "/proc/self/ns/mnt"))
    except OSError:
        return False


def look(asked: checking.Asked, told: checking.Told) -> None:
    """Look twice, and tell of those that stood still between the looks."""
    oldest_s = told.threshold("host.procstate", OLD_S)
    before = {one.pid: one for one in table(asked.root)}
    stuck: List[Dict[str, object]] = []
    if any(one.state == "D" for one in before.values()):
        time.sleep(LOOK_AGAIN_S)
        for one in table(asked.root):
            earlier = before.get(one.pid)
            if one.state == "D" and earlier and earlier.state == "D" and earlier.switches == one.switches and not elsewhere(asked.root, one.pid):
                where = places.line(asked.root, f"/proc/{one.pid}/wchan")
                stuck.append({"pid": one.pid, "name": one.name, "wchan": "" if where == "0" else where, "suspect": bool(SUSPECT.search(where))})
    zombies = [one for one in before.values() if one.state == "Z" and one.age_s > oldest_s and not elsewhere(asked.root, one.ppid)]
    parents = sorted({one.ppid for one in zombies})[:10]
    says = [f"pid {one['pid']} ({one['name']}) sleeps uninterruptibly in {one['wchan'] or 'the kernel'}" for one in stuck[:5]]
    says += [f"{len(zombies)} zombies that their parents (pids {' '.join(map(str, parents))}) do not reap"] if len(zombies) > MANY_ZOMBIES else []
    fix = "look at the mount or driver named by `cat /proc/PID/stack` as root; drain the node, such a process ends with a reboot only"
    value = {"stuck": stuck[:20], "zombies": len(zombies)}
    told.say(
        "host.procstate",
        "warn" if says else "ok",
        f"Processes that stand still: {'; '.join(says) or 'none'}.",
        value,
        fix=fix,
        threshold=f"older than {oldest_s:g} s",
    )
