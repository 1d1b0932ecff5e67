"""Folders of the cases of `ready`: one for each run, in memory where no disk can be written, and
those of the administrators' slots, which the site keeps for a while.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.model.request import ReadyRequest
from trainprobe.model.subjects import Subject
from trainprobe.system.working_folders import make_working_folder, remove_working_folder

if TYPE_CHECKING:
    from trainprobe.ready.local_checks import CheckResult
    from trainprobe.site import Site

CELL = "checks"
DAY_S = 24 * 3600
_NAME = re.compile(r"ready-[a-z]+-[A-Za-z0-9._-]+-\d{8}T\d{6}-\d+")
IN_MEMORY = "/dev/shm"  # noqa: S108 - the last resort where the disks are full
_MOST_REMOVED = 200  # in one run: a prolog must not clean up for long


@contextlib.contextmanager
def case_for(request: ReadyRequest) -> Iterator[tuple[Case, str]]:
    """Yield an open case and the name that the report shows, "" for a case that is then removed.

    A full disk or a read-only working directory is a finding, so the case is then kept in memory.
    Raises UsageError where the folder that the user named cannot be written.
    """
    if request.case is not None or request.slot == "step":
        try:
            made = Case.create(request.case, "ready", request.argv)
        except UsageError:
            if request.case is not None:
                raise
        else:
            with made:
                yield made, made.name
            return
    folder = _memory_folder()
    try:
        with Case.create(os.path.join(folder, "case"), "ready", request.argv) as case:
            yield case, ""
    finally:
        remove_working_folder(folder)


def _memory_folder() -> str:
    for place in (IN_MEMORY, ""):
        if not place or os.access(place, os.W_OK):
            with contextlib.suppress(OSError):
                return make_working_folder(place)
    raise UsageError(
        "There is no place to write anything, not even in memory.", "Name a folder with --case DIR."
    )


def keep(
    results: Sequence[CheckResult],
    *,
    folder: str,
    host: str,
    slot: str,
    budget: str,
    argv: Sequence[str],
) -> None:
    """Write the results as a case, which `trainprobe explain FOLDER` judges with all causes.

    Raises UsageError where it cannot be written.
    """
    with Case.create(folder, "ready", argv) as case:
        data = {"budget": budget, "slot": slot, "by": "here", "nodes": [host], "nproc": 0}
        case.add("ready", cell=CELL, source="here", data={**data, "undone": []})
        for result in results:
            record_result(case, result, host)


def record_result(case: Case, result: CheckResult, host: str) -> None:
    """Record the result of a check program of `host`."""
    case.add(
        result.kind,
        subject=Subject("host", host),
        cell=CELL,
        source=result.source,
        began=result.began,
        took_s=result.took_s,
        outcome=result.outcome,
        reason=result.reason,
        data=result.data,
    )


def new_folder(path: str) -> None:
    """Make the folder of a new case, which must not exist: it could be somebody else's link."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.mkdir(path, 0o700)


def place_in(site: Site, *, host: str, slot: str) -> str:
    """Return the folder of a new case in that of the site, "" where the site keeps none."""
    if not site.keep_in:
        return ""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", host)
    return os.path.join(
        site.keep_in,
        f"ready-{slot}-{safe}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}",
    )


def prune(site: Site, now: float | None = None) -> int:
    """Remove the cases that the site's limits on age and number do not allow; return how many.

    Removes only what is surely such a case: a folder with our name and this user as its owner, no
    link, with a case in it. Never raises.
    """
    now = time.time() if now is None else now
    oldest = now - site.keep_days * DAY_S if site.keep_days is not None else None
    if not site.keep_in or (oldest is None and site.keep_most is None):
        return 0
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(site.keep_in) as entries:
            found = sorted(
                (
                    (moment, entry.path)
                    for entry in entries
                    if _NAME.fullmatch(entry.name) and (moment := _ours(entry.path)) is not None
                ),
                reverse=True,
            )
    except OSError:
        return 0
    kept = len(found) if site.keep_most is None else site.keep_most
    gone = [
        path
        for place, (moment, path) in enumerate(found)
        if place >= kept or (oldest is not None and moment < oldest)
    ]
    for path in gone[-_MOST_REMOVED:]:
        shutil.rmtree(path, ignore_errors=True)
    return len(gone[-_MOST_REMOVED:])


def _ours(path: str) -> float | None:
    """When the case was written, None where it is none of ours."""
    try:
        folder, meta = os.lstat(path), os.lstat(os.path.join(path, "case.json"))
    except OSError:
        return None
    ours = (
        stat.S_ISDIR(folder.st_mode)
        and folder.st_uid == os.geteuid()
        and stat.S_ISREG(meta.st_mode)
    )
    return meta.st_mtime if ours else None
