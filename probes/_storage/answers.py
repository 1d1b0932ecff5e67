"""The verdicts on paths: do they answer, are they what they should be, is there room."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import Dict, List, Optional, Set, Tuple

from _ready import checking, child
from _storage import mounts

GIB = 2**30
Looked = Dict[str, mounts.Path]
CACHES = ("TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")


def _patience_s(asked: checking.Asked, told: checking.Told) -> float:
    return told.threshold("fs.hang", mounts.HANG_S if asked.slot == "step" else mounts.HANG_OF_ADMIN_S)


def _only_denied_to_root(one: mounts.Path, asked: checking.Asked) -> bool:
    """A server that maps root to nobody answers, and lets users in whom it knows."""
    return asked.slot != "step" and one.stat.get("errno") in ("EACCES", "EPERM")


class Paths:
    """The paths of one run, looked at once: the first check that needs them asks."""

    def __init__(self) -> None:
        self._looked: Optional[Looked] = None

    def of(self, asked: checking.Asked, told: checking.Told) -> Looked:
        if self._looked is None:
            self._looked = mounts.look(asked, _patience_s(asked, told))
        return self._looked

    def writable(self, asked: checking.Asked, told: checking.Told) -> List[str]:
        """The named folders in which a file could be written."""
        return [one.path for one in self.of(asked, told).values() if one.path in asked.paths and one.stat.get("writable") == ""]

    def hang(self, asked: checking.Asked, told: checking.Told) -> None:
        """A path that the job needs must answer; another one is only told."""
        looked, limit_s = self.of(asked, told), _patience_s(asked, told)
        hung = [one for one in looked.values() if one.how in ("timed_out", "stuck")]
        needed = [one for one in hung if one.path in asked.paths]
        if not looked:
            told.say("fs.hang", "skip", "No folder was named that the job needs.")
            return
        says = "; ".join(
            f"{one.path} ({one.mount.shown() if one.mount else 'no mount'}) gives no answer{f', it waits in {one.where}' if one.where else ''}" for one in hung
        )
        fix = f"umount -f -l {' '.join(shlex.quote(one.mount.point if one.mount else one.path) for one in hung)}, and mount again; else drain the node"
        state = "fail" if needed else "warn" if hung else "ok"
        told.say("fs.hang", state, f"{says}." if hung else f"All {len(looked)} paths answer.", [one.path for one in hung], fix=fix, threshold=f"{limit_s:g} s")

    def present(self, asked: checking.Asked, told: checking.Told) -> None:
        """The named paths exist, on the mount that fstab plans, and can be written where their permissions say so."""
        looked, planned = self.of(asked, told), mounts.planned(asked.root)
        points = {mount.point for mount in mounts.table(asked.root)}
        bad: List[str] = []
        for path in asked.paths:
            one = looked.get(path)
            if one is None or one.how in ("timed_out", "stuck"):
                checking.value(f"mount.{path}", "gives no answer")
                continue
            problem = "" if _only_denied_to_root(one, asked) else one.problem
            checking.value(f"mount.{path}", "missing" if problem else one.mount.shown() if one.mount else "no mount")
            if problem:
                bad.append(f"{path}: {problem}")
                continue
            writable = one.stat.get("writable")
            checking.value(f"writable.{path}", {"": "yes", None: "no folder"}.get(writable, f"no, {writable}"))
            bad += [f"{path} cannot be written: {writable}"] if writable in ("EROFS", "EDQUOT", "ENOSPC", "EIO", "ESTALE") and not _meant(one) else []
            bad += [f"{path} should lie on {point} ({kind}), which is not mounted" for point, kind in _missing(one.real, planned, points)]
        lost = [f"{point} ({kind}) of /etc/fstab is not mounted" for point, kind in planned.items() if point not in points and mounts.NETWORK.fullmatch(kind)]
        if not asked.paths and not planned:
            told.say("fs.mounts", "skip", "No folder was named, and /etc/fstab plans none.")
            return
        says = "; ".join(bad or lost) or f"{len(asked.paths)} named paths are there"
        told.say(
            "fs.mounts",
            "fail" if bad else "warn" if lost else "ok",
            f"Mounts: {says}.",
            bad or lost,
            fix="sudo mount -a; drain the node where that does not help",
        )

    def room(self, asked: checking.Asked, told: checking.Told) -> None:
        """Bytes and inodes that are left."""
        most, full, tight = told.threshold("fs.inodes", 0.95), [], []
        for one in self.of(asked, told).values():
            total, free, nodes, nodes_free = one.stat.get("disk") or (0, 0, 0, 0)
            if not total or one.path not in asked.paths:
                continue
            full += [f"{one.path} has {free / GIB:.1f} GiB and {nodes_free} inodes free"] if free < 2**26 or (nodes and not nodes_free) else []
            crowded = (free < 10 * GIB and free < total * (1 - most)) or (nodes and nodes_free < nodes * (1 - most))
            tight += [f"{one.path} is {1 - free / total:.0%} full, {nodes_free} inodes are left"] if crowded else []
        if not asked.paths:
            told.say("fs.inodes", "skip", "No folder was named.")
            return
        written = [text for text in full if _can_be_written(self.of(asked, told)[text.partition(" has ")[0]])]
        says = "; ".join(full or tight) or "there is room in all named folders"
        told.say(
            "fs.inodes",
            "fail" if written else "warn" if full or tight else "ok",
            f"Room: {says}.",
            full or tight,
            fix="free space there, or point the job elsewhere",
            threshold=most,
        )

    def caches(self, asked: checking.Asked, told: checking.Told) -> None:
        """Caches that every rank writes should not lie on the network."""
        table = mounts.table(asked.root)
        found = {name: mounts.on(table, os.path.normpath(os.environ[name])) for name in CACHES if os.environ.get(name, "").startswith("/")}
        slow = [f"{name}={os.environ[name]} ({mount.shown()})" for name, mount in found.items() if mount and mount.network]
        fix = "export TMPDIR=/tmp TRITON_CACHE_DIR=/tmp/triton-$SLURM_JOB_ID TORCHINDUCTOR_CACHE_DIR=/tmp/inductor-$SLURM_JOB_ID"
        told.say("fs.cache", "warn" if slow else "ok", f"Caches on the network: {', '.join(slow) or 'none'}.", slow, fix=fix)


def _meant(one: mounts.Path) -> bool:
    """A mount that was made read-only is meant so; a file system that went read-only under a writable mount is not."""
    return one.stat.get("writable") == "EROFS" and one.mount is not None and "ro" in one.mount.options.split(",")


def _can_be_written(one: mounts.Path) -> bool:
    return not _meant(one) and one.stat.get("writable") not in ("EACCES", "EPERM")


def _missing(real: str, planned: Dict[str, str], points: Set[str]) -> List[Tuple[str, str]]:
    above = [(point, kind) for point, kind in planned.items() if point != "/" and (real + "/").startswith(point.rstrip("/") + "/")]
    return [(point, kind) for point, kind in above if point not in points]


def quota(asked: checking.Asked, told: checking.Told) -> None:
    """What the tools for quotas say, where there are any."""
    commands = [["quota", "-w", "-p"]] if shutil.which("quota") else []
    lustre = [mount.point for mount in mounts.table(asked.root) if mount.kind == "lustre"][:4]
    commands += [["lfs", "quota", "-q", "-u", str(os.getuid()), point] for point in lustre] if shutil.which("lfs") else []
    if not commands:
        told.say("fs.quota", "skip", "No tool here tells of quotas (quota, lfs).")
        return
    most = told.threshold("fs.quota", 0.9)
    asking = [lambda words=words: child.run_program(words, 3.0)[1] for words in commands]
    answers = child.ask_all(asking, 4.0)
    used = [row for answer in answers if answer.how == "answered" for row in quota_rows(answer.reply)]
    near = [f"{name} is {share:.0%} used" for name, share in used if share > most]
    if all(answer.how != "answered" for answer in answers):
        told.say("fs.quota", "unknown", f"The tools for quotas gave no answer: {answers[0].reply}.")
        return
    told.say(
        "fs.quota",
        "warn" if near else "ok",
        f"Quotas: {'; '.join(near) or f'{len(used)}, all with room'}.",
        near,
        fix="free space, or ask for a larger quota",
        threshold=most,
    )


def quota_rows(text: str) -> List[Tuple[str, float]]:
    """(file system, the larger of its shares of blocks and files). Columns: used, quota, limit, grace, and the same for files; 0 is no limit."""
    rows = []
    for line in text.splitlines():
        found = re.match(r"\s*(/\S+|\S+:/\S*)\s+(\d+)\*?\s+(\d+)\s+(\d+)\s+\S+\s+(\d+)\*?\s+(\d+)\s+(\d+)", line)
        if found:
            numbers = [int(one) for one in found.groups()[1:]]
            shares = [numbers[place] / (numbers[place + 1] or numbers[place + 2]) for place in (0, 3) if numbers[place + 1] or numbers[place + 2]]
            rows += [(found[1], max(shares))] if shares else []
    return rows
