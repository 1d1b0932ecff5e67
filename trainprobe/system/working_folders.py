"""Our own working folders in the temporary directory: each says whose it is, so that those of a
killed run can be cleared away by the keeper or by the next run.

A folder goes only if it is ours beyond doubt: a real folder of this user with our kind of name, in
which a plain file of ours names a process of this very boot and pid namespace that is gone. Another
host or container may share the directory, and its processes cannot be seen from here, so that its
folders stay. Nothing is followed through a link, and the clearing stops after a short time.
A folder whose maker was killed before it could write that file is empty and goes after an hour; the
file itself goes last.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from typing import Iterator, List, Optional

from trainprobe.system.proc import read_file, read_stat

PREFIX = "trainprobe-"
# `pid start boot namespace`: the process that made the folder, its start in clock ticks, and where
# that means anything
MARK = ".trainprobe-owner"
FRESH_MARK = f"{MARK}.new"  # until it is whole
UNMARKED_S = 3600.0  # nobody needs so long between a folder and its mark
# as tempfile.mkdtemp makes them, and as collect/exchange.py does beside a process of the job
NAME = re.compile(r"trainprobe-(?:[a-z0-9_]{8}|[0-9a-f]{12})")
SWEEP_S = 1.0
LOOK_AT = 200
MOST_ABOVE = 4
MARK_LINE = re.compile(r"(\d{1,10}) (\d{1,20}) ([0-9a-f-]{36} pid:\[\d{1,20}\])\n")


def make_working_folder(root: str = "") -> str:
    """Clear away what killed runs left in `root`, the temporary directory by default, and make a
    new folder there. Raises OSError where none can be made.
    """
    sweep(root)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=root or None)
    mark(folder)
    return folder


@contextlib.contextmanager
def working_folder() -> Iterator[str]:
    """A new folder that goes at the end of the block; where this process is killed in it, the
    next run clears it away. Raises OSError where none can be made.
    """
    folder = make_working_folder()
    try:
        yield folder
    finally:
        remove_working_folder(folder)


def mark(folder: str) -> None:
    """Write into a new folder whose it is; a line that means nothing where that cannot be told, for
    a folder without a mark looks like one that was never used.
    """
    with (
        contextlib.suppress(OSError),
        open(os.path.join(folder, MARK), "x", encoding="ascii") as file,
    ):
        file.write(mark_line(os.getpid()) or "?\n")


def remove_working_folder(path: str) -> None:
    """Remove a folder of ours, its mark last: who is killed meanwhile leaves the rest to the next
    run.
    """
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name in set(os.listdir(folder)) - {MARK}:
                _remove_inside(folder, name)
        finally:
            os.close(folder)
    shutil.rmtree(path, ignore_errors=True)  # does not follow links


def _remove_inside(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        shutil.rmtree(f"/proc/self/fd/{folder}/{name}", ignore_errors=True)
    except OSError:
        pass  # the caller tries once more


def mark_line(pid: int) -> str:
    """What the mark says of a folder that may go with process `pid`; "" where nothing can."""
    now, own_place = read_stat(pid), _own_place()
    return f"{pid} {now.started_ticks} {own_place}\n" if now is not None and own_place else ""


def working_folder_of(path: str) -> str:
    """Return the marked folder of our own that `path` lies in, else ""."""
    for _ in range(MOST_ABOVE):
        if NAME.fullmatch(os.path.basename(path)) and os.path.lexists(os.path.join(path, MARK)):
            return path
        path = os.path.dirname(path)
    return ""


def remove_abandoned(path: str, within_s: float) -> bool:
    """Remove one folder as soon as its process is gone, and say whether it was."""
    ends, own_place = time.monotonic() + within_s, _own_place()
    if not own_place or not NAME.fullmatch(os.path.basename(path)):
        return False
    while not _abandoned(path, own_place):
        if time.monotonic() > ends or not os.path.isdir(path):
            return False
        time.sleep(0.02)
    remove_working_folder(path)
    return True


def sweep(root: str = "", within_s: float = SWEEP_S, owner: Optional[int] = None) -> List[str]:
    """Remove the folders of runs that are gone, as far as possible, and return their paths.

    They belong to this user, or to `owner`, whose job was looked into.
    """
    ends, removed = time.monotonic() + within_s, []
    own_place = _own_place()
    try:
        names = sorted(
            name for name in os.listdir(root or tempfile.gettempdir()) if NAME.fullmatch(name)
        )[:LOOK_AT]
    except OSError:
        return []
    for name in names:
        path = os.path.join(root or tempfile.gettempdir(), name)
        if time.monotonic() > ends:
            break
        if not own_place:
            break
        if _abandoned(path, own_place, owner):
            remove_working_folder(path)
            removed.append(path)
        elif _remove_unmarked(path, owner):
            removed.append(path)
    return removed


def _remove_unmarked(path: str, owner: Optional[int] = None) -> bool:
    """Remove an old folder of ours in which nothing is but the beginning of a mark."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about, names = os.fstat(folder), os.listdir(folder)
        if (
            about.st_uid not in (os.getuid(), owner)
            or time.time() - about.st_mtime < UNMARKED_S
            or set(names) - {MARK, FRESH_MARK}
            or (MARK in names and os.stat(MARK, dir_fd=folder, follow_symlinks=False).st_size)
        ):
            return False
        for name in names:
            os.unlink(name, dir_fd=folder)
        os.rmdir(path)  # not where something has come into it meanwhile
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _abandoned(path: str, own_place: str, owner: Optional[int] = None) -> bool:
    try:
        folder = os.lstat(path)
        mark = os.lstat(os.path.join(path, MARK))
    except OSError:
        return False
    own = (
        folder.st_uid == mark.st_uid
        and folder.st_uid in (os.getuid(), owner)
        and stat.S_ISDIR(folder.st_mode)
        and stat.S_ISREG(mark.st_mode)
        and mark.st_nlink == 1
    )
    answer = (
        MARK_LINE.fullmatch(read_file(os.path.join(path, MARK), 200).decode("ascii", "replace"))
        if own
        else None
    )
    if answer is None or answer.group(3) != own_place:
        return False
    now = read_stat(int(answer.group(1)))
    return now is None or now.dead or now.started_ticks != int(answer.group(2))


def _own_place() -> Optional[str]:
    """This boot and pid namespace; None where they cannot be told."""
    text = read_file("/proc/sys/kernel/random/boot_id", 64).decode("ascii", "replace").strip()
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return f"{text} {space}" if re.fullmatch(r"[0-9a-f-]{36}", text) else None
