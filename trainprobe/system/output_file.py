"""A file that children write to and that never fills the disk. Standard library only: the keeper uses it."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Tuple

LEAST_CAP_BYTES, TAIL_BYTES = 4096, 2**20


class OutputFile:
    """Cut back to its head and its newest tail whenever it passes its cap; one line between the two says how much is gone.

    OSError when it cannot be opened. Anything but a plain file (a device, a FIFO) is left alone.
    """

    def __init__(self, path: str, cap_bytes: int) -> None:
        self.path, self.cap_bytes = path, max(cap_bytes, LEAST_CAP_BYTES)
        self.fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
        found = os.fstat(self.fd)
        self.id = (found.st_dev, found.st_ino)
        self.regular = stat.S_ISREG(found.st_mode)
        self.size = found.st_size

    def look(self) -> Tuple[int, bool]:
        """Return the bytes cut just now, and whether it grows so fast that the next look should be soon."""
        size = os.fstat(self.fd).st_size if self.regular else 0
        grown, self.size = size - self.size, size
        if size <= self.cap_bytes:
            return 0, grown > self.cap_bytes // 8
        return self._cut(size), True

    def _cut(self, size: int) -> int:
        head = self.cap_bytes // 4
        keep = min(head, TAIL_BYTES)
        tail = os.pread(self.fd, keep, size - keep)
        newest = os.fstat(self.fd).st_size
        if size < newest <= size + keep:  # what came while we read, so that as little as possible is lost between the two
            tail = (tail + os.pread(self.fd, newest - size, size))[-keep:]
        newest = os.fstat(self.fd).st_size
        os.ftruncate(self.fd, head)  # those who write go on at the new end, because of O_APPEND
        cut = newest - head - len(tail)
        with contextlib.suppress(OSError):  # on a full disk the head must do
            os.write(self.fd, b"\n[trainprobe: %d bytes cut here]\n" % cut + tail)
        self.size = os.fstat(self.fd).st_size
        return cut
