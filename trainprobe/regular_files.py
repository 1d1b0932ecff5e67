"""Files that somebody else made, opened so that nothing by that name can hold us up or fill the
memory.

A FIFO waits for its writer, a device never ends, a link leads anywhere, and a sparse file of 100 GB
takes no room on the disk.
"""

from __future__ import annotations

import os
import stat
from typing import List, Tuple


def open_regular(path: str, *, within: str = "") -> Tuple[int, os.stat_result]:
    """Open for reading without waiting for anybody; return the descriptor and its status.

    Raises OSError, or ValueError for anything but a regular file, its message a clause that fits
    behind the file's name. `within` names the folder that a link must not lead out of.
    The type is asked of the descriptor, so that no other file can take its place in between.
    """
    if "\0" in path:
        raise ValueError("is no name of a file")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if within:
        real, top = os.path.realpath(path), os.path.realpath(within)
        if os.path.commonpath((real, top)) != top:
            raise ValueError("is a link out of its folder and was not followed")
        path, flags = real, flags | os.O_NOFOLLOW
    fd = os.open(path, flags)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode):
        return fd, found
    os.close(fd)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
    raise ValueError(f"is {kind} and was not read")


_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def read_regular_file(path: str, cap_bytes: int, *, within: str = "") -> bytes:
    """Return the whole content. Raises as `open_regular`, and ValueError above `cap_bytes`."""
    fd, found = open_regular(path, within=within)
    try:
        parts: List[bytes] = []
        size = found.st_size if found.st_size > cap_bytes else 0
        while size <= cap_bytes:
            expected = max(found.st_size - size, 1 << 16)
            part = os.read(fd, min(expected, cap_bytes) + 1)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        raise ValueError(f"is larger than {_shown(cap_bytes)} and was not read")
    finally:
        os.close(fd)


def read_head(path: str, cap_bytes: int) -> bytes:
    """Return at most the first `cap_bytes`. Raises as `open_regular`."""
    fd, _ = open_regular(path)
    try:
        return os.read(fd, cap_bytes)
    finally:
        os.close(fd)


def _shown(size: int) -> str:
    return f"{size // 2**20} MiB" if size >= 2**20 else f"{size} bytes"
