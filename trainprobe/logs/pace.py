"""How far the reading has come: what was read of how much, how fast, and how long it will still take."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from trainprobe.logs.opening import STDIN
from trainprobe.model.progress import Progress

PATIENCE_S = 1.0
EVERY_S = 0.5
KILO, MEGA, GIGA = 1e3, 1e6, 1e9


class Pace:
    """Tells a listener, from the second second on and twice a second at most; `over` takes the last sentence back. Sizes are those on the disk."""

    def __init__(self, paths: Sequence[str], progress: Progress) -> None:
        self._progress = progress
        self._files = len(paths)
        self._total = sum(_size(path) for path in paths)
        self._done_files = self._done_bytes = 0
        self._began = time.monotonic()
        self._told = self._began + PATIENCE_S - EVERY_S
        self._said = ""

    def at(self, read_bytes: int) -> None:
        """So many bytes of the present file were read."""
        now = time.monotonic()
        if now - self._told >= EVERY_S:
            self._told = now
            says = self.says(self._done_bytes + read_bytes, now - self._began)
            if says != self._said:
                self._progress.note(says)
            self._said = says

    def done(self, read_bytes: int) -> None:
        """The present file is over."""
        self._done_files += 1
        self._done_bytes += read_bytes
        if self._done_files < self._files:
            self.at(0)

    def over(self) -> None:
        """All that will be read was read."""
        if self._said:
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
        return f"Reading: {_amount(read)} of {_amount(self._total)} ({share} %), {files}, {speed}{left}"


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
