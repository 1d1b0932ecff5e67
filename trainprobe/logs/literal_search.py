"""The search for all literal texts at once, in pieces of megabytes."""

from __future__ import annotations

import functools
import re
from typing import Any

from trainprobe.signatures import literals

# The beginnings of blocks that are kept whole.
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
# Signs of restarts (logtext/attempts.py) that are rare enough to be searched for in gigabytes.
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


# Up to here each text is searched for by itself, which takes less time than making a search for
# all of them.
FEW_BYTES = 32 * 2**10
BEGINNING_BYTES = 6
_ENDS = -1
SLOW = (
    "Hyperscan is not installed, so logs were searched by a slower search, which takes longer and"
    " finds the same; where there is a wheel: pip install hyperscan."
)


class LiteralSearch:
    """Finds texts. `hits` returns (end, number of the text), ordered by end, also for texts that
    overlap. A slower search stands in where hyperscan is not installed.
    """

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        self.texts = self._sought = texts
        self._searched = 0

    def hits(self, content: bytes) -> list[tuple[int, int]]:
        self._searched += len(content)
        if self._searched <= FEW_BYTES:
            return _one_by_one(self._sought, content)
        if self._plain is not None:
            return self._plain.hits(content)
        found: list[tuple[int, int]] = []
        append = found.append

        def on_match(number: int, begin: int, end: int, flags: int, context: Any) -> None:  # noqa: ARG001 - hyperscan's signature
            append((end, number))

        if self._database is not None:
            self._database.scan(content, match_event_handler=on_match)
        return found

    @functools.cached_property
    def _database(self) -> Any:
        return _database(self._sought)

    @functools.cached_property
    def _plain(self) -> _PlainSearch | None:
        return _PlainSearch(self._sought) if self._database is None and self._sought else None

    def without(self, numbers: frozenset[int]) -> LiteralSearch:
        """The same search without some texts; the others keep their numbers."""
        return _reduced(self, numbers)


def _one_by_one(texts: tuple[bytes, ...], content: bytes) -> list[tuple[int, int]]:
    found = []
    for number, text in enumerate(texts):
        at = content.find(text)
        while at >= 0:
            found.append((at + len(text), number))
            at = content.find(text, at + 1)
    return sorted(found)


class _PlainSearch:
    """The search without hyperscan: one pattern finds the beginnings of texts, and each text with
    that beginning is then compared.
    """

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        self._by_beginning: dict[bytes, list[tuple[int, bytes]]] = {}
        for number, text in enumerate(texts):
            self._by_beginning.setdefault(text[:BEGINNING_BYTES], []).append((number, text))
        tree: dict[int, Any] = {}
        for beginning in self._by_beginning:
            branch = tree
            for character in beginning:
                branch = branch.setdefault(character, {})
            branch[_ENDS] = {}
        self._pattern = re.compile(_branches(tree))
        self._sizes = sorted({len(beginning) for beginning in self._by_beginning})

    def hits(self, content: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        match = self._pattern.search(content)
        while match is not None:
            at = match.start()
            for size in self._sizes:
                beginning = content[at : at + size]
                for number, text in (
                    self._by_beginning.get(beginning, ()) if len(beginning) == size else ()
                ):
                    if content.startswith(text, at):
                        found.append((at + len(text), number))
            match = self._pattern.search(content, at + 1)
        return sorted(found)


def _branches(tree: dict[int, Any]) -> bytes:
    """A pattern that shares common prefixes, so that no place is tried a thousand times."""
    if _ENDS in tree:
        return b""
    parts = [
        re.escape(bytes((character,))) + _branches(below)
        for character, below in sorted(tree.items())
    ]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"


@functools.lru_cache(maxsize=1)
def is_fast() -> bool:
    """Whether hyperscan is installed; it has wheels only for x86-64 and ARM on Linux and macOS."""
    try:
        import hyperscan
    except (ImportError, OSError):
        return False
    return hyperscan is not None


class _Reduced(LiteralSearch):
    def __init__(self, whole: LiteralSearch, numbers: frozenset[int]) -> None:
        self._kept = tuple(number for number in range(len(whole.texts)) if number not in numbers)
        super().__init__(tuple(whole.texts[number] for number in self._kept))
        self.texts = whole.texts

    def hits(self, content: bytes) -> list[tuple[int, int]]:
        kept = self._kept
        return [(end, kept[number]) for end, number in super().hits(content)]


@functools.lru_cache(maxsize=16)
def _reduced(whole: LiteralSearch, numbers: frozenset[int]) -> LiteralSearch:
    return _Reduced(whole, numbers)


def _database(texts: tuple[bytes, ...]) -> Any:
    if not texts or not is_fast():
        return None
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[re.escape(text) for text in texts],
        ids=list(range(len(texts))),
        flags=[0] * len(texts),
    )
    return database


@functools.lru_cache(maxsize=1)
def signature_search() -> LiteralSearch:
    """The search for all literal texts of the signatures, and for the beginnings of tracebacks,
    stack dumps and tables.
    """
    return LiteralSearch(
        tuple(text.encode() for text in dict.fromkeys((*literals(), *BEGINNINGS, *RESTARTS)))
    )
