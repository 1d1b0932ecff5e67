"""Disjoint groups of two over all nodes, a different set in each round."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

Groups = tuple[tuple[str, ...], ...]
SORTED = 64  # up to so many nodes, rounds with few neighbours come first


@lru_cache(maxsize=256)
def rotation(nodes: tuple[str, ...], turn: int) -> Groups:
    """Return disjoint groups of all nodes. Turns 0 and 1 are the ring of neighbours, which
    collectives walk; later turns pair nodes further apart.

    With an odd number of nodes one group has three.
    """
    count = len(nodes)
    if count < 2:
        return ()
    if count == 2:
        return (tuple(nodes),)
    if count % 2:
        return _odd(nodes, turn)
    if turn < 2:
        return _neighbours([*nodes[turn:], *nodes[:turn]])
    if count > SORTED:
        return _of_tournament(nodes, turn - 2)
    rounds = _apart(nodes)
    return rounds[(turn - 2) % len(rounds)]


def rounds_for_all(count: int) -> int:
    """How many turns of `rotation` let all of at most eight nodes meet: the ring and the tournament
    share pairs, and groups of three overlap.
    """
    return 2 * count + 2


def one_idle(nodes: tuple[str, ...], turn: int) -> Groups:
    """The same in pairs only: of an odd number of nodes one rests, a different one each turn."""
    if len(nodes) % 2 == 0:
        return rotation(nodes, turn)
    rounds = _tournament([*nodes, ""])
    return tuple(pair for pair in rounds[turn % len(rounds)] if "" not in pair)


def _neighbours(nodes: Sequence[str]) -> Groups:
    return tuple(tuple(nodes[place : place + 2]) for place in range(0, len(nodes), 2))


def _odd(nodes: Sequence[str], turn: int) -> Groups:
    count = len(nodes)
    steps = [step for step in range(1, count) if gcd(step, count) == 1]
    step = steps[(turn // 2) % len(steps)]  # coprime to the count, it meets every node once
    walked = [nodes[(turn + place * step) % count] for place in range(count)]
    return (*_neighbours(walked[:-3]), tuple(walked[-3:]))


def _tournament(nodes: Sequence[str]) -> list[Groups]:
    """The circle method: n nodes meet each other once in n - 1 rounds."""
    return [_of_tournament(nodes, turn) for turn in range(len(nodes) - 1)]


def _of_tournament(nodes: Sequence[str], turn: int) -> Groups:
    ring = list(nodes[1:])
    turn %= len(ring)
    row = [nodes[0], *ring[len(ring) - turn :], *ring[: len(ring) - turn]]
    return tuple((row[place], row[-1 - place]) for place in range(len(row) // 2))


@lru_cache(maxsize=4)
def _apart(nodes: tuple[str, ...]) -> tuple[Groups, ...]:
    """All rounds of the tournament, first those with the fewest neighbours of the ring, which turns
    0 and 1 have covered.
    """
    ring = {frozenset(pair) for pair in zip(nodes, [*nodes[1:], nodes[0]], strict=True)}
    rounds = _tournament(nodes)
    return tuple(sorted(rounds, key=lambda pairs: sum(frozenset(pair) in ring for pair in pairs)))
