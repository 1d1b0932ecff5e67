"""An output file of children that never fills the disk. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from typing import Tuple

LEAST_CAP_BYTES, TAIL_BYTES, SETTLED_TAIL_BYTES = 4096, 2**20, 4 * 2**20
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2  # linux/falloc.h

_libc = ctypes.CDLL(None)


class OutputFile:
    """Of a file that passes its cap only the head and the newest tail stay; `settle` puts one line
    between them that says how much is gone.

    Until then the middle is a hole: it takes no room, every byte keeps its place, and nothing of
    what is being written just now can be lost. A file system without holes has the file cut back at
    once; then what is written during the cut may be lost. OSError when it cannot be opened.
    Anything but a plain file (a device, a FIFO) is left alone.
    """

    def __init__(self, path: str, cap_bytes: int) -> None:
        self.path, self.cap_bytes = path, max(cap_bytes, LEAST_CAP_BYTES)
        self.head_bytes = self.cap_bytes // 4
        self.fd = os.open(
            path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o600
        )
        found = os.fstat(self.fd)
        self.id = (found.st_dev, found.st_ino)
        self.regular = stat.S_ISREG(found.st_mode)
        self.size = found.st_size
        self.hole_end = self.head_bytes
        self.holes = True
        self.cut_bytes = self.said_bytes = 0  # in all; and the length of our own line

    def look(self) -> Tuple[int, bool]:
        """Return the bytes cut now, and whether it grows so fast that the next look is due soon."""
        size = os.fstat(self.fd).st_size if self.regular else 0
        grown, self.size = size - self.size, size
        if self.head_bytes + size - self.hole_end <= self.cap_bytes:
            return 0, grown > self.cap_bytes // 8
        keep = min(self.head_bytes, TAIL_BYTES)
        if self.holes and self._punch(self.hole_end, size - keep):
            cut, self.hole_end = size - keep - self.hole_end, size - keep
            self.cut_bytes += cut
            return cut, True
        self.holes = False
        return (
            self._cut_back(keep, os.fstat(self.fd).st_size - self.head_bytes - self.said_bytes),
            True,
        )

    def settle(self) -> int:
        """Close the hole once nobody writes any more. Return the bytes that this cut as well."""
        if self.hole_end == self.head_bytes:
            return 0
        size = os.fstat(self.fd).st_size
        begin, self.hole_end = self.hole_end, self.head_bytes
        keep = min(size - begin, self.cap_bytes // 2, SETTLED_TAIL_BYTES)
        return self._cut_back(keep, size - begin)

    def _punch(self, begin: int, end: int) -> bool:
        mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
        return bool(
            _libc.fallocate(self.fd, mode, ctypes.c_int64(begin), ctypes.c_int64(end - begin)) == 0
        )

    def _cut_back(self, keep: int, there: int) -> int:
        """Leave the head, a line that counts what is gone, and the last `keep` bytes."""
        size = os.fstat(self.fd).st_size
        tail = os.pread(self.fd, keep, size - keep)
        newest = os.fstat(self.fd).st_size
        if (
            size < newest <= size + keep
        ):  # what came while we read, so that as little as possible is lost between the two
            tail = (tail + os.pread(self.fd, newest - size, size))[-keep:]
            there += newest - size
        os.ftruncate(
            self.fd, self.head_bytes
        )  # those who write go on at the new end, because of O_APPEND
        cut = there - len(tail)
        self.cut_bytes += cut
        notice = b"\n[trainprobe: %d bytes cut here]\n" % self.cut_bytes
        self.said_bytes = len(notice)
        with contextlib.suppress(OSError):  # on a full disk the head must do
            os.write(self.fd, notice + tail)
        self.size = os.fstat(self.fd).st_size
        return cut
