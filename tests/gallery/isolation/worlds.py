"""Invented clusters with known faults, in which every method tries its groups: the same faults,
and the same luck for the same try, for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

PASS_TIME = 1.0  # the unit: a pair test where all is well
FAIL_TIME = 3.0  # a hang is ended at three times that
NOISE = 0.01


@dataclass
class World:
    """`bad` nodes and `links` fail with probability `p` each time; `slow` nodes take `factor`
    times as long; `late` nodes fail in groups of `size` and more, and any such group where
    `size_alone`.
    """

    nodes: tuple[str, ...]
    seed: str
    bad: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()
    slow: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    size: int = 0
    size_alone: bool = False
    p: float = 1.0
    factor: float = 3.0
    tests: int = 0
    rounds: int = 0
    wall: float = 0.0
    counts: dict[frozenset[str], int] = field(default_factory=dict)

    def round(self, groups: Sequence[Sequence[str]]) -> list[tuple[bool, float]]:
        """Try disjoint groups at the same time; for each whether it passed, and the time that it
        took. The round lasts as long as its longest.
        """
        assert len({name for group in groups for name in group}) == sum(map(len, groups)), (
            "a node is in two groups"
        )
        found = [self._tried(frozenset(group)) for group in groups]
        self.tests += len(groups)
        self.rounds += 1
        self.wall += max(took for _, took in found)
        return found

    def _tried(self, group: frozenset[str]) -> tuple[bool, float]:
        again = self.counts[group] = self.counts.get(group, 0) + 1
        luck = random.Random(f"{self.seed} {sorted(group)} {again}")
        fails = any(luck.random() < self.p for _ in group & self.bad) or any(
            luck.random() < self.p for link in self.links if link <= group
        )
        fails |= len(group) >= self.size > 0 and (self.size_alone or bool(group & self.late))
        took = (
            PASS_TIME
            * (1 + luck.uniform(-NOISE, NOISE))
            * (self.factor if group & self.slow else 1.0)
        )
        return (False, FAIL_TIME) if fails else (True, took)


KINDS = (
    "none",
    "one node",
    "two nodes",
    "a quarter",
    "a half",
    "link of neighbours",
    "any link",
    "node and link",
    "slow 3 times",
    "slow 1.3 times",
    "flaky node 0.5",
    "flaky node 0.2",
    "flaky link 0.5",
    "node at scale",
    "size alone",
)


def world(kind: str, count: int, draw: int) -> World | None:
    """Return the world of this draw; None where so few nodes cannot have such a fault."""
    seed = f"{kind} {count} {draw}"
    luck = random.Random(seed)
    nodes = tuple(f"n{number}" for number in range(count))
    wanted = {"two nodes": 2, "a quarter": max(1, count // 4), "a half": count // 2}.get(kind, 1)
    if (
        count <= wanted
        or (("scale" in kind or "size" in kind) and count < 8)
        or ("link" in kind and count < 3)
    ):
        return None
    chosen = frozenset(luck.sample(nodes, wanted))
    place = luck.randrange(count)
    neighbours = frozenset((nodes[place], nodes[(place + 1) % count]))
    anyone = frozenset(luck.sample(nodes, 2))
    size = luck.randrange(3, count // 2 + 1) if count >= 8 else 0
    made = {
        "link of neighbours": {"links": frozenset([neighbours])},
        "any link": {"links": frozenset([anyone])},
        "node and link": {"bad": chosen, "links": frozenset([neighbours])},
        "slow 3 times": {"slow": chosen},
        "slow 1.3 times": {"slow": chosen, "factor": 1.3},
        "flaky node 0.5": {"bad": chosen, "p": 0.5},
        "flaky node 0.2": {"bad": chosen, "p": 0.2},
        "flaky link 0.5": {"links": frozenset([neighbours]), "p": 0.5},
        "node at scale": {"late": chosen, "size": size},
        "size alone": {"size": size, "size_alone": True},
        "none": {},
    }.get(kind, {"bad": chosen})
    return World(nodes, seed, **made)  # type: ignore[arg-type] # fields by name
