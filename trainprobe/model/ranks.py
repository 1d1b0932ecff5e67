"""Sets of ranks as text: short for tables and JSON, in words for sentences."""

from __future__ import annotations

from typing import Iterable, List, Sequence, Set, Tuple


def fold_ranks(ranks: Iterable[int]) -> str:
    """Return a rank set in short, `0,2-4`; the empty set gives an empty string."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in _runs(ranks))


def unfold_ranks(text: str) -> Tuple[int, ...]:
    """Return the ranks of `0,2-4`. Raises ValueError for anything else."""
    ranks: Set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low, high = int(first), int(last if dash else first)
        if low > high or high - low > 10_000_000:
            raise ValueError(f"{part!r} is no range of ranks")
        ranks.update(range(low, high + 1))
    return tuple(sorted(ranks))


def name_ranks(ranks: Iterable[int], nobody: str = "") -> str:
    """Return a rank set in words: `rank 3`, `ranks 0 and 1`, `ranks 0-2 and 5`; `nobody` for no
    rank.
    """
    parts: List[str] = []
    for low, high in _runs(ranks):
        parts += [f"{low}-{high}"] if high - low > 1 else map(str, sorted({low, high}))
    if not parts:
        return nobody
    word = "ranks" if len(parts) > 1 or "-" in parts[0] else "rank"
    return f"{word} {and_list(parts)}"


def and_list(items: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join([part for part in (", ".join(items[:-1]), *items[-1:]) if part])


def _runs(ranks: Iterable[int]) -> List[Tuple[int, int]]:
    found: List[Tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if found and rank == found[-1][1] + 1:
            found[-1] = (found[-1][0], rank)
        else:
            found.append((rank, rank))
    return found
