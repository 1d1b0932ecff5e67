"""Factories of data as they go wrong. Those above the line need no torch."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any


class Rows:
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> Any:
        if row >= self.count:
            raise IndexError(row)
        return {"x": [float(row)] * 4, "y": row}


def good(rows: int = 100) -> Rows:
    return Rows(rows)


def raises() -> Rows:
    raise ValueError("no data at /nowhere")


def leaves() -> Rows:
    sys.exit("give me a path")


def leaves_at_once() -> Rows:
    os._exit(0)


def kills_itself() -> Rows:
    os.kill(os.getpid(), signal.SIGKILL)
    return Rows(1)


def hangs() -> Rows:
    time.sleep(600)
    return Rows(1)


def hangs_below() -> Rows:
    """A child that ignores SIGTERM in a session of its own, and a parent that waits for it."""
    pid = os.fork()
    if not pid:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        os._exit(0)
    os.waitpid(pid, 0)
    return Rows(1)


def forks() -> Rows:
    os.fork()
    return Rows(20)


def prints() -> Rows:
    for _ in range(20_000):
        print("y" * 1000)
    return Rows(20)


def closes() -> Rows:
    os.closerange(0, 100)
    return Rows(20)


def nothing() -> None:
    return None


def a_class() -> type[Rows]:
    return Rows


def endless() -> Iterator[int]:
    while True:
        yield 1


def no_rows() -> Rows:
    return Rows(0)


class Lying(Rows):
    def __len__(self) -> int:
        return 5000


def lies() -> Rows:
    return Lying(50)


class Silent(Rows):
    def __len__(self) -> int:
        raise RuntimeError("nobody counted")


def silent() -> Rows:
    return Silent(5)


class Empty(Rows):
    def __getitem__(self, row: int) -> Any:
        return {}


def empty() -> Rows:
    return Empty(50)


class Halved(Rows):
    """Loses every second row on the way to a spawned worker."""

    def __getstate__(self) -> dict[str, int]:
        return {"count": self.count // 2}


def halved() -> Rows:
    return Halved(100)


def closed_over() -> Rows:
    rows = Rows(100)
    rows.transform = lambda row: row  # type: ignore[attr-defined]
    return rows


def closed_over_and_spawned() -> Any:
    import multiprocessing

    import torch.utils.data

    return torch.utils.data.DataLoader(
        closed_over(), batch_size=10, multiprocessing_context=multiprocessing.get_context("spawn")
    )
