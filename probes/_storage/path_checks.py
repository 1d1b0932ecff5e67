"""The checks of paths: do they answer, are they what they should be, is there room."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import Dict, List, Optional, Set, Tuple

from _shared import checks, child_processes
from _storage import mounts

GIB = 2**30
Looked = Dict[str, mounts.Path]
CACHES = (
    "TMPDIR",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "XDG_CACHE_HOME",
)


def _patience_s(launch: checks.Launch, results: checks.Results) -> float:
    return results.threshold(
        "fs.hang", mounts.HANG_S if launch.slot == "step" else mounts.HANG_OF_ADMIN_S
    )


def _only_denied_to_root(item: mounts.Path, launch: checks.Launch) -> bool:
    """A server that maps root to nobody answers, and lets users in whom it knows."""
    return launch.slot != "step" and item.stat.get("errno") in ("EACCES", "EPERM")


class Paths:
    """The paths of one run, looked at once: the first check that needs them asks."""

    def __init__(self) -> None:
        self._looked: Optional[Looked] = None

    def of(self, launch: checks.Launch, results: checks.Results) -> Looked:
        if self._looked is None:
            self._looked = mounts.look(launch, _patience_s(launch, results))
        return self._looked

    def writable(self, launch: checks.Launch, results: checks.Results) -> List[str]:
        """The named folders in which a file could be written."""
        return [
            item.path
            for item in self.of(launch, results).values()
            if item.path in launch.paths and item.stat.get("writable") == ""
        ]

    def hang(self, launch: checks.Launch, results: checks.Results) -> None:
        """A path that the job needs must answer; any other only warns."""
        looked, limit_s = self.of(launch, results), _patience_s(launch, results)
        hung = [item for item in looked.values() if item.how in ("timed_out", "stuck")]
        needed = [item for item in hung if item.path in launch.paths]
        if not looked:
            results.add("fs.hang", "skip", "No folder was named that the job needs.")
            return
        sentence = "; ".join(
            f"{item.path} ({item.mount.shown() if item.mount else 'no mount'}) gives no"
            f" answer{f', it waits in {item.where}' if item.where else ''}"
            for item in hung
        )
        points = [item.mount.point if item.mount else item.path for item in hung]
        fix = f"umount -f -l {shlex.join(points)}, and mount again; else drain the node"
        state = "fail" if needed else "warn" if hung else "ok"
        results.add(
            "fs.hang",
            state,
            f"{sentence}." if hung else f"All {len(looked)} paths answer.",
            [item.path for item in hung],
            fix=fix,
            threshold=f"{limit_s:g} s",
        )

    def present(self, launch: checks.Launch, results: checks.Results) -> None:
        """The named paths exist on the mount of fstab and can be written as permissions say."""
        looked, planned = self.of(launch, results), mounts.planned(launch.root)
        points = {mount.point for mount in mounts.table(launch.root)}
        bad: List[str] = []
        for path in launch.paths:
            item = looked.get(path)
            if item is None or item.how in ("timed_out", "stuck"):
                checks.value(f"mount.{path}", "gives no answer")
                continue
            problem = "" if _only_denied_to_root(item, launch) else item.problem
            checks.value(
                f"mount.{path}",
                "missing" if problem else item.mount.shown() if item.mount else "no mount",
            )
            if problem:
                bad.append(f"{path}: {problem}")
                continue
            writable = item.stat.get("writable")
            checks.value(
                f"writable.{path}", {"": "yes", None: "no folder"}.get(writable, f"no, {writable}")
            )
            bad += (
                [f"{path} cannot be written: {writable}"]
                if writable in ("EROFS", "EDQUOT", "ENOSPC", "EIO", "ESTALE") and not _meant(item)
                else []
            )
            bad += [
                f"{path} should lie on {point} ({kind}), which is not mounted"
                for point, kind in _missing(item.real, planned, points)
            ]
        lost = [
            f"{point} ({kind}) of /etc/fstab is not mounted"
            for point, kind in planned.items()
            if point not in points and mounts.NETWORK.fullmatch(kind)
        ]
        if not launch.paths and not planned:
            results.add("fs.mounts", "skip", "No folder was named, and /etc/fstab plans none.")
            return
        sentence = "; ".join(bad or lost) or f"{len(launch.paths)} named paths are there"
        results.add(
            "fs.mounts",
            "fail" if bad else "warn" if lost else "ok",
            f"Mounts: {sentence}.",
            bad or lost,
            fix="sudo mount -a; drain the node where that does not help",
        )

    def room(self, launch: checks.Launch, results: checks.Results) -> None:
        """Bytes and inodes that are left."""
        most, full, tight = results.threshold("fs.inodes", 0.95), [], []
        for item in self.of(launch, results).values():
            total, free, nodes, nodes_free = item.stat.get("disk") or (0, 0, 0, 0)
            if not total or item.path not in launch.paths:
                continue
            full += (
                [f"{item.path} has {free / GIB:.1f} GiB and {nodes_free} inodes free"]
                if free < 2**26 or (nodes and not nodes_free)
                else []
            )
            crowded = (free < 10 * GIB and free < total * (1 - most)) or (
                nodes and nodes_free < nodes * (1 - most)
            )
            tight += (
                [f"{item.path} is {1 - free / total:.0%} full, {nodes_free} inodes are left"]
                if crowded
                else []
            )
        if not launch.paths:
            results.add("fs.inodes", "skip", "No folder was named.")
            return
        written = [
            text
            for text in full
            if _can_be_written(self.of(launch, results)[text.partition(" has ")[0]])
        ]
        sentence = "; ".join(full or tight) or "there is room in all named folders"
        results.add(
            "fs.inodes",
            "fail" if written else "warn" if full or tight else "ok",
            f"Room: {sentence}.",
            full or tight,
            fix="free space there, or point the job elsewhere",
            threshold=most,
        )

    def caches(self, launch: checks.Launch, results: checks.Results) -> None:
        """Caches that every rank writes should not lie on the network."""
        table = mounts.table(launch.root)
        found = {
            name: mounts.on(table, os.path.normpath(os.environ[name]))
            for name in CACHES
            if os.environ.get(name, "").startswith("/")
        }
        slow = [
            f"{name}={os.environ[name]} ({mount.shown()})"
            for name, mount in found.items()
            if mount and mount.network
        ]
        fix = (
            "export TMPDIR=/tmp TRITON_CACHE_DIR=/tmp/triton-$SLURM_JOB_ID"
            " TORCHINDUCTOR_CACHE_DIR=/tmp/inductor-$SLURM_JOB_ID"
        )
        sentence = f"Caches on the network: {', '.join(slow) or 'none'}."
        results.add("fs.cache", "warn" if slow else "ok", sentence, slow, fix=fix)


def _meant(item: mounts.Path) -> bool:
    """Whether the mount itself is read-only, not just the file system under a writable one."""
    return (
        item.stat.get("writable") == "EROFS"
        and item.mount is not None
        and "ro" in item.mount.options.split(",")
    )


def _can_be_written(item: mounts.Path) -> bool:
    return not _meant(item) and item.stat.get("writable") not in ("EACCES", "EPERM")


def _missing(real: str, planned: Dict[str, str], points: Set[str]) -> List[Tuple[str, str]]:
    above = [
        (point, kind)
        for point, kind in planned.items()
        if point != "/" and (real + "/").startswith(point.rstrip("/") + "/")
    ]
    return [(point, kind) for point, kind in above if point not in points]


def quota(launch: checks.Launch, results: checks.Results) -> None:
    """What the tools for quotas say, where there are any."""
    commands = [["quota", "-w", "-p"]] if shutil.which("quota") else []
    lustre = [mount.point for mount in mounts.table(launch.root) if mount.kind == "lustre"][:4]
    commands += (
        [["lfs", "quota", "-q", "-u", str(os.getuid()), point] for point in lustre]
        if shutil.which("lfs")
        else []
    )
    if not commands:
        results.add("fs.quota", "skip", "No tool here reports quotas (quota, lfs).")
        return
    most = results.threshold("fs.quota", 0.9)
    asking = [
        lambda fields=fields: child_processes.run_program(fields, 3.0)[1] for fields in commands
    ]
    answers = child_processes.ask_all(asking, 4.0)
    used = [
        row for answer in answers if answer.how == "answered" for row in quota_rows(answer.reply)
    ]
    near = [f"{name} is {share:.0%} used" for name, share in used if share > most]
    if all(answer.how != "answered" for answer in answers):
        results.add("fs.quota", "unknown", f"The quota tools did not answer: {answers[0].reply}.")
        return
    sentence = f"Quotas: {'; '.join(near) or f'{len(used)}, all with room'}."
    fix = "free space, or ask for a larger quota"
    results.add("fs.quota", "warn" if near else "ok", sentence, near, fix=fix, threshold=most)


def quota_rows(text: str) -> List[Tuple[str, float]]:
    """(file system, the larger of its used shares of blocks and files); 0 means no limit."""
    rows = []
    for line in text.splitlines():
        found = re.match(
            r"\s*(/\S+|\S+:/\S*)\s+(\d+)\*?\s+(\d+)\s+(\d+)\s+\S+\s+(\d+)\*?\s+(\d+)\s+(\d+)", line
        )
        if found:
            numbers = [int(item) for item in found.groups()[1:]]
            shares = [
                numbers[place] / (numbers[place + 1] or numbers[place + 2])
                for place in (0, 3)
                if numbers[place + 1] or numbers[place + 2]
            ]
            rows += [(found[1], max(shares))] if shares else []
    return rows
