"""The control groups of a process: memory limit, use, peak and kills, number of processes, CPU
quota, pressure. Version 1 and 2.

A machine can have both versions mounted, with the controllers in version 1 and an empty version 2
beside it. So each controller is looked for by name in version 1 first; version 2 counts only where
it really has that controller.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from trainprobe.collect import procfs

# Version 1 has no word for "no limit": it is the largest multiple of the page size in 63 bits. No
# machine has 2**60 bytes.
NO_LIMIT_BYTES = 2**60
FOLDERS_CAP = 500
CONTROLLERS = ("memory", "pids", "cpu", "freezer")
PRESSURES = ("memory", "cpu", "io")


@dataclass(frozen=True)
class Mount:
    """A mounted cgroup file system. `root` is the part of the hierarchy that is mounted at
    `point`; `names` its version 1 controllers.
    """

    version: int
    root: str
    point: str
    names: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """One controller's folder of a process, and the mount point, above which nothing is visible."""

    version: int
    folder: str
    top: str

    def up(self) -> List[str]:
        """The folder and all above it, down to the mount point."""
        folders = [self.folder]
        while folders[-1] != self.top and len(folders) < 64:
            folders.append(os.path.dirname(folders[-1]))
        return folders


@dataclass(frozen=True)
class Groups:
    """Where a process is controlled: one group per controller that is really there."""

    by_controller: Mapping[str, Group] = field(default_factory=dict)

    @property
    def memory(self) -> Optional[Group]:
        return self.by_controller.get("memory")


@dataclass(frozen=True)
class Snapshot:
    """The numbers of one moment; None is "not known", for a limit "none". Bytes, processes, and
    CPUs (a quota of 1.5 is one and a half CPUs).

    `oom_kill` counts processes that the kernel killed here and below; `host_oom_kill` counts those
    of the whole machine. `limit_path` is the folder whose limit is the smallest; `current_bytes`
    and `peak_bytes` are that folder's. `limit_hits` counts how often an allocation met that limit
    (and mostly found other memory to free). `under_oom` says that its processes stand still until
    memory is freed (version 1 with its killer switched off), `frozen` that all are stopped by the
    freezer (docker pause, scontrol suspend).
    """

    version: int
    path: str
    limit_bytes: Optional[int] = None
    limit_path: str = ""
    current_bytes: Optional[int] = None
    reclaimable_bytes: Optional[int] = None
    peak_bytes: Optional[int] = None
    oom_kill: Optional[int] = None
    host_oom_kill: Optional[int] = None
    pids_max: Optional[int] = None
    pids_current: Optional[int] = None
    cpu_quota: Optional[float] = None
    pressure: Mapping[str, Any] = field(default_factory=dict)
    limit_hits: Optional[int] = None
    under_oom: Optional[bool] = None
    frozen: Optional[bool] = None


def find(pid: Optional[int] = None) -> Groups:
    """The groups of a process, by default ours; empty where they cannot be read."""
    own = procfs.read_or_none(f"/proc/{'self' if pid is None else pid}/cgroup") or ""
    return resolve(own, procfs.read_or_none("/proc/self/mountinfo") or "")


def resolve(membership: str, mountinfo: str) -> Groups:
    """The same from the text of /proc/PID/cgroup and /proc/PID/mountinfo (cgroups(7), proc(5))."""
    mounts = parse_mounts(mountinfo)
    lines = [line.split(":", 2) for line in membership.splitlines() if line.count(":") >= 2]
    found: Dict[str, Group] = {}
    for controller in CONTROLLERS:
        group = next(
            (
                _group(mounts, 1, controller, path)
                for _, names, path in lines
                if controller in names.split(",")
            ),
            None,
        )
        group = group or next(
            (
                _group(mounts, 2, controller, path)
                for number, names, path in lines
                if number == "0" and not names
            ),
            None,
        )
        if group is not None:
            found[controller] = group
    return Groups(found)


@functools.lru_cache(maxsize=4)
def parse_mounts(mountinfo: str) -> Tuple[Mount, ...]:
    """The cgroup mounts: fields 4 and 5 are root and point; type and options follow ` - `."""
    mounts: List[Mount] = []
    for line in mountinfo.splitlines():
        place, dash, kind = line.partition(" - ")
        fields, kinds = place.split(), kind.split()
        if not dash or len(fields) < 5 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if kinds[0] == "cgroup2" else 1
        mounts.append(
            Mount(
                version,
                _unescape(fields[3]),
                _unescape(fields[4]),
                tuple(kinds[2].split(",")) if version == 1 else (),
            )
        )
    return tuple(mounts)


def snapshot(groups: Groups) -> Optional[Snapshot]:
    """Read the numbers; None where no cgroup controls memory."""
    group = groups.memory
    if group is None:
        return None
    names = _NAMES[group.version]
    limit_bytes, limit_folder = None, group.folder
    for folder in group.up():
        limit = _number(f"{folder}/{names['limit']}")
        if (
            limit is not None
            and limit < NO_LIMIT_BYTES
            and (limit_bytes is None or limit < limit_bytes)
        ):
            limit_bytes, limit_folder = limit, folder
    statistics = _pairs(f"{limit_folder}/memory.stat")
    control = _pairs(f"{limit_folder}/memory.oom_control")
    return Snapshot(
        version=group.version,
        path=group.folder,
        limit_bytes=limit_bytes,
        limit_path=limit_folder if limit_bytes is not None else "",
        current_bytes=_number(f"{limit_folder}/{names['current']}"),
        reclaimable_bytes=statistics.get(
            "total_inactive_file" if group.version == 1 else "inactive_file"
        ),
        peak_bytes=_number(f"{limit_folder}/{names['peak']}"),
        oom_kill=_oom_kills(group),
        host_oom_kill=_pairs("/proc/vmstat").get("oom_kill"),
        pids_max=_smallest_number(groups.by_controller.get("pids"), "pids.max"),
        pids_current=_pids_current(groups.by_controller.get("pids")),
        cpu_quota=cpu_quota(groups.by_controller.get("cpu")),
        pressure=pressure(group),
        limit_hits=(
            _number(f"{limit_folder}/memory.failcnt")
            if group.version == 1
            else _pairs(f"{limit_folder}/memory.events").get("max")
        ),
        under_oom=bool(control["under_oom"]) if "under_oom" in control else None,
        frozen=frozen(groups),
    )


def rise(before: Optional[Snapshot], after: Optional[Snapshot]) -> Optional[int]:
    """How many processes the kernel killed for memory in between; None where a count is missing."""
    if (
        before is None
        or after is None
        or before.oom_kill is None
        or after.oom_kill is None
        or before.path != after.path
    ):
        return None
    return max(0, after.oom_kill - before.oom_kill)


def headroom_bytes(pid: Optional[int] = None) -> Optional[int]:
    """Memory left to `pid`'s group: MemAvailable or the rest below its smallest limit."""
    left = [procfs.memory_bytes("MemAvailable")]
    now = snapshot(find(pid))
    if now is not None and now.limit_bytes is not None and now.current_bytes is not None:
        left.append(max(0, now.limit_bytes - now.current_bytes + (now.reclaimable_bytes or 0)))
    known = [amount for amount in left if amount is not None]
    return min(known) if known else None


def cpu_quota(group: Optional[Group]) -> Optional[float]:
    """The smallest quota up the tree, in CPUs; None for none."""
    quotas: List[float] = []
    for folder in group.up() if group is not None else ():
        if group is not None and group.version == 1:
            quota_us, period_us = (
                _number(f"{folder}/cpu.cfs_quota_us"),
                _number(f"{folder}/cpu.cfs_period_us"),
            )
        else:
            columns = (procfs.read_or_none(f"{folder}/cpu.max") or "").split()
            quota_us, period_us = (
                (procfs.number(columns[0]), procfs.number(columns[1]))
                if len(columns) == 2
                else (None, None)
            )
        if quota_us is not None and quota_us > 0 and period_us:
            quotas.append(quota_us / period_us)
    return min(quotas, default=None)


def frozen(groups: Groups) -> Optional[bool]:
    """Whether the freezer has stopped the group; None where nothing tells, as for the root."""
    group, memory = groups.by_controller.get("freezer"), groups.memory
    if group is not None:
        state = (procfs.read_or_none(f"{group.folder}/freezer.state") or "").strip()
        return state != "THAWED" if state else None
    events = (
        _pairs(f"{memory.folder}/cgroup.events")
        if memory is not None and memory.version == 2
        else {}
    )
    return bool(events["frozen"]) if "frozen" in events else None


def pressure(group: Group) -> Dict[str, Any]:
    """{memory: {some_avg10, full_avg10}, …} of the group (version 2) or machine, in percent."""
    found: Dict[str, Any] = {}
    for name in PRESSURES:
        text = (
            procfs.read_or_none(f"{group.folder}/{name}.pressure") if group.version == 2 else None
        )
        text = text or procfs.read_or_none(f"/proc/pressure/{name}") or ""
        averages = parse_pressure(text)
        if averages:
            found[name] = averages
    return found


def parse_pressure(text: str) -> Dict[str, float]:
    """`some avg10=0.12 avg60=… avg300=… total=…` and the same for `full`."""
    found: Dict[str, float] = {}
    for columns in (line.split() for line in text.splitlines()):
        for word in columns[1:]:
            name, _, value = word.partition("=")
            if name in ("avg10", "avg60") and value.replace(".", "", 1).isdecimal():
                found[f"{columns[0]}_{name}"] = float(value)
    return found


_NAMES = {
    1: {
        "limit": "memory.limit_in_bytes",
        "current": "memory.usage_in_bytes",
        "peak": "memory.max_usage_in_bytes",
    },
    2: {"limit": "memory.max", "current": "memory.current", "peak": "memory.peak"},
}


def _group(mounts: Iterable[Mount], version: int, controller: str, path: str) -> Optional[Group]:
    for mount in mounts:
        if mount.version != version or (version == 1 and controller not in mount.names):
            continue
        if path.endswith(
            " (deleted)"
        ):  # The group is gone; only its last, dying processes are still in it.
            return None
        inside = (
            path[len(mount.root.rstrip("/")) :]
            if path == mount.root or path.startswith(mount.root.rstrip("/") + "/")
            else ""
        )
        folder = os.path.normpath(mount.point + "/" + inside)
        # A path that starts with /.. or is not below the mounted root lies outside what this
        # container may see.
        if not (folder + "/").startswith(mount.point.rstrip("/") + "/") or not os.path.isdir(
            folder
        ):
            folder = mount.point
        if version == 1 or _has_controller(folder, mount.point, controller):
            return Group(version, folder, mount.point)
    return None


def _has_controller(folder: str, top: str, controller: str) -> bool:
    """A version 2 folder has the controllers of the folders above too."""
    return any(
        controller in (procfs.read_or_none(f"{above}/cgroup.controllers") or "").split()
        for above in Group(2, folder, top).up()
    )


def _oom_kills(group: Group) -> Optional[int]:
    """Version 2 counts the kills of all groups below; version 1 counts each group's own."""
    if group.version == 2:
        return _pairs(f"{group.folder}/memory.events").get("oom_kill")
    counts: List[int] = []
    for folder, below, _ in os.walk(group.folder):
        count = _pairs(f"{folder}/memory.oom_control").get("oom_kill")
        if count is not None:
            counts.append(count)
        if len(counts) >= FOLDERS_CAP:
            below.clear()
            break
    return sum(counts) if counts else None


def _smallest_number(group: Optional[Group], name: str) -> Optional[int]:
    numbers = [_number(f"{folder}/{name}") for folder in (group.up() if group is not None else ())]
    return min((number for number in numbers if number is not None), default=None)


def _pids_current(group: Optional[Group]) -> Optional[int]:
    return None if group is None else _number(f"{group.folder}/pids.current")


def _pairs(path: str) -> Dict[str, int]:
    """A file of `name number` lines."""
    rows = (line.split() for line in (procfs.read_or_none(path) or "").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}


def _number(path: str) -> Optional[int]:
    return procfs.number((procfs.read_or_none(path) or "").strip())


def _unescape(text: str) -> str:
    """In mountinfo, the kernel writes blanks and backslashes as octal numbers."""
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, plain)
    return text
