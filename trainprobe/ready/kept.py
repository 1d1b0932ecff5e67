"""The cases of the administrators' slots, in the folder that the site names: written, and removed again when they are old or too many."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainprobe.case import Case
from trainprobe.model.subjects import Subject

if TYPE_CHECKING:
    from trainprobe.ready.here import Told
    from trainprobe.site import Site

CELL = "checks"
DAY_S = 24 * 3600
_NAME = re.compile(r"ready-[a-z]+-[A-Za-z0-9._-]+-\d{8}T\d{6}-\d+")
_MOST_REMOVED = 200  # in one run: a prolog is no place for a long clean-up


def keep(told: Sequence[Told], *, folder: str, host: str, slot: str, budget: str, argv: Sequence[str]) -> None:
    """Write what was told as a case that `trainprobe explain FOLDER` judges with all causes. Raises UsageError where it cannot be written."""
    with Case.create(folder, "ready", argv) as case:
        case.add("ready", cell=CELL, source="here", data={"budget": budget, "slot": slot, "by": "here", "nodes": [host], "nproc": 0, "undone": []})
        for one in told:
            put(case, one, host)


def put(case: Case, told: Told, host: str) -> None:
    """Put what a check program of `host` told into an open case."""
    case.add(
        told.kind,
        subject=Subject("host", host),
        cell=CELL,
        source=told.source,
        began=told.began,
        took_s=told.took_s,
        outcome=told.outcome,
        reason=told.reason,
        data=told.data,
    )


def new_folder(path: str) -> None:
    """Make the folder of a new case, which nobody may have made before us: in a folder that others can write it could be a link to elsewhere."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.mkdir(path, 0o700)


def place_in(site: Site, *, host: str, slot: str) -> str:
    """Return the folder of a new case in that of the site, "" where the site keeps none."""
    if not site.keep_in:
        return ""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", host)
    return os.path.join(site.keep_in, f"ready-{slot}-{safe}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}")


def prune(site: Site, now: float | None = None) -> int:
    """Remove cases that are older than the site wants them, or more than it wants; return how many.

    Only what is surely such a case: a folder of ours by its name, this user's, no link, with a case in it. Never raises.
    """
    now = time.time() if now is None else now
    oldest = now - site.keep_days * DAY_S if site.keep_days is not None else None
    if not site.keep_in or (oldest is None and site.keep_most is None):
        return 0
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(site.keep_in) as entries:
            found = sorted(
                ((moment, entry.path) for entry in entries if _NAME.fullmatch(entry.name) and (moment := _ours(entry.path)) is not None), reverse=True
            )
    except OSError:
        return 0
    kept = len(found) if site.keep_most is None else site.keep_most
    gone = [path for place, (moment, path) in enumerate(found) if place >= kept or (oldest is not None and moment < oldest)]
    for path in gone[-_MOST_REMOVED:]:
        shutil.rmtree(path, ignore_errors=True)
    return len(gone[-_MOST_REMOVED:])


def _ours(path: str) -> float | None:
    """When the case was written, None where it is none of ours."""
    try:
        folder, meta = os.lstat(path), os.lstat(os.path.join(path, "case.json"))
    except OSError:
        return None
    ours = stat.S_ISDIR(folder.st_mode) and folder.st_uid == os.geteuid() and stat.S_ISREG(meta.st_mode)
    return meta.st_mtime if ours else None
