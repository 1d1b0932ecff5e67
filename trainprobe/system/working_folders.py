"""Our own working folders in the temporary directory: each says whose it is, so that those of a
killed run can be cleared away by the next.

A folder goes only if it is ours beyond doubt: a real folder of this user with our kind of name, in
which a plain file of ours names a process of this very boot and pid namespace that is gone. Another
host or container may share the directory, and its processes cannot be seen from here, so that its
folders stay. Nothing is followed through a link, and the clearing stops after a short time.
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
NAME = re.compile(r"trainprobe-[a-z0-9_]{8}")  # as tempfile.mkdtemp makes them
SWEEP_S = 1.0
LOOK_AT = 200
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
        shutil.rmtree(folder, ignore_errors=True)


def mark(folder: str) -> None:
    """Write into a new folder whose it is, where that can be told."""
    now, own_place = read_stat(os.getpid()), _own_place()
    if now is not None and own_place:
        with (
            contextlib.suppress(OSError),
            open(os.path.join(folder, MARK), "x", encoding="ascii") as file,
        ):
            file.write(f"{os.getpid()} {now.started_ticks} {own_place}\n")


def sweep(root: str = "", within_s: float = SWEEP_S) -> List[str]:
    """Remove the folders of runs that are gone, as far as possible, and return their paths."""
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
        if own_place and _abandoned(path, own_place):
            shutil.rmtree(path, ignore_errors=True)  # does not follow links
            removed.append(path)
    return removed


def _abandoned(path: str, own_place: str) -> bool:
    try:
        folder = os.lstat(path)
        mark = os.lstat(os.path.join(path, MARK))
    except OSError:
        return False
    own = (
        folder.st_uid == mark.st_uid == os.getuid()
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
    return now is None or now.started_ticks != int(answer.group(2))


def _own_place() -> Optional[str]:
    """This boot and pid namespace; None where they cannot be told."""
    text = read_file("/proc/sys/kernel/random/boot_id", 64).decode("ascii", "replace").strip()
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return f"{text} {space}" if re.fullmatch(r"[0-9a-f-]{36}", text) else None
