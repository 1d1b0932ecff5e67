"""The search for all literal texts at once, in pieces of megabytes."""

from __future__ import annotations

import functools
import re
from typing import Any

from trainprobe.signatures import literals

# What begins something that is kept whole; searched for beside the signatures' own texts.
BEGINNINGS: tuple[str, ...] = (
    "Traceback (most recent call",
    "Fatal Python error",
    "(most recent call first)",
    "Current thread 0x",
    "Exception raised from",
    "Root Cause (first observed failure)",
    "terminate called",
    "CapturedTraceback",
    "*** Process received signal",
    "*** Aborted at",
    "Exception Group Traceback",
    "Other Failures:",
)
# What tells of restarts (logtext/attempts.py), as far as it is rare enough to be searched for in gigabytes.
RESTARTS: tuple[str, ...] = (
    "will restart worker group",
    "estarting worker group",
    "Rendezvous'ing worker group",
    "restart_count=",
    "TORCHELASTIC_RESTART_COUNT",
    "tarting worker group",
    "launch configs:",
    "Setting OMP_NUM_THREADS",
    "(exitcode:",
    "ChildFailedError",
    "CANCELLED AT",
    "JOB REQUEUE",
    "Requeued SLURM job",
    "Attempting to recover",
    "successfully finished",
)


class Engine:
    """Finds where texts stand. `hits` gives (end, number of the text) in the order of the ends.

    Hyperscan finds overlapping texts too and says each text's every end once.
    """

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        self.texts = texts
        self._database = _database(texts)

    def hits(self, content: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        append = found.append

        def heard(number: int, begin: int, end: int, flags: int, context: Any) -> None:  # noqa: ARG001 - as the engine calls it
            append((end, number))

        if self._database is not None:
            self._database.scan(content, match_event_handler=heard)
        return found

    def without(self, numbers: frozenset[int]) -> Engine:
        """The same search without some texts; the numbers of the others stay."""
        return _reduced(self, numbers)


class _Reduced(Engine):
    def __init__(self, whole: Engine, numbers: frozenset[int]) -> None:
        self._kept = tuple(number for number in range(len(whole.texts)) if number not in numbers)
        super().__init__(tuple(whole.texts[number] for number in self._kept))
        self._inner_texts, self.texts = self.texts, whole.texts

    def hits(self, content: bytes) -> list[tuple[int, int]]:
        kept = self._kept
        return [(end, kept[number]) for end, number in super().hits(content)]


@functools.lru_cache(maxsize=16)
def _reduced(whole: Engine, numbers: frozenset[int]) -> Engine:
    return _Reduced(whole, numbers)


def _database(texts: tuple[bytes, ...]) -> Any:
    if not texts:
        return None
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=[re.escape(text) for text in texts], ids=list(range(len(texts))), flags=[0] * len(texts))
    return database


@functools.lru_cache(maxsize=1)
def engine() -> Engine:
    """The search for every literal text of the signatures, and for what begins a traceback, a stack dump or a table."""
    return Engine(tuple(text.encode() for text in dict.fromkeys((*literals(), *BEGINNINGS, *RESTARTS))))
