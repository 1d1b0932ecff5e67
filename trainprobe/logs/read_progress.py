"""The progress of reading: the amount read, the speed, and the time left."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from trainprobe.logs.opening import STDIN
from trainprobe.model.progress import Progress

PATIENCE_S = 1.0
EVERY_S = 0.5
KILO, MEGA, GIGA = 1e3, 1e6, 1e9


class ReadProgress:
    """Reports to `progress` after the first second, at most twice a second; `over` removes the last
    report. Sizes are those on the disk.
    """

    def __init__(self, paths: Sequence[str], progress: Progress) -> None:
        self._progress = progress
        self._files = len(paths)
        self._total = sum(_size(path) for path in paths)
        self._done_files = self._done_bytes = 0
        self._began = time.monotonic()
        self._reported = self._began + PATIENCE_S - EVERY_S
        self._last = ""

    def at(self, read_bytes: int) -> None:
        """Note that so many bytes of the present file were read."""
        now = time.monotonic()
        if now - self._reported >= EVERY_S:
            self._reported = now
            says = self.says(self._done_bytes + read_bytes, now - self._began)
            if says != self._last:
                self._progress.note(says)
            self._last = says

    def done(self, read_bytes: int) -> None:
        """Note the end of the present file."""
        self._done_files += 1
        self._done_bytes += read_bytes
        if self._done_files < self._files:
            self.at(0)

    def over(self) -> None:
        """End the reports."""
        if self._last:
            self._progress.note("")

    def says(self, read: int, took_s: float) -> str:
        """`Reading: 1.2 of 8.0 GB (15 %), 3 of 80 files, 640 MB/s, 11 s left`."""
        rate = read / took_s if took_s > 0 else 0.0
        speed = f"{_amount(int(rate))}/s"
        files = f"{self._done_files} of {self._files} files" if self._files > 1 else "1 file"
        if self._total <= 0:
            return f"Reading: {_amount(read)}, {files}, {speed}"
        left = f", {_span(max(0.0, self._total - read) / rate)} left" if rate > 0 else ""
        share = min(100, 100 * read // self._total)
        return (
            f"Reading: {_amount(read)} of {_amount(self._total)} ({share} %), {files},"
            f" {speed}{left}"
        )


def _amount(size: int) -> str:
    for unit, name, places in ((GIGA, "GB", 1), (MEGA, "MB", 0), (KILO, "kB", 0)):
        if size >= unit:
            return f"{size / unit:.{places}f} {name}"
    return f"{size} B"


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02d} s"


def _size(path: str) -> int:
    if path == STDIN:
        return 0
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
