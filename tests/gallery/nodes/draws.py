"""What is drawn for each run, by its number and a seed: which fault, on which node or link,
asked in which way, and which decoys stand beside it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.gallery.nodes.decoys import DECOYS, Decoy
from tests.gallery.nodes.faults import Fault
from tests.gallery.nodes.ways import OUTSIDE, WAYS, Way

SEED = 20261122
MOST_DECOYS = 2


@dataclass(frozen=True)
class Draw:
    """`fault` is None in a healthy run. `host` is where it is planted, by place from 0; `other`
    is the far end of a link, or whom a name leads to.
    """

    number: int
    way: Way
    fault: Fault | None = None
    host: int = 0
    other: int = 1
    decoys: tuple[tuple[Decoy, int], ...] = ()

    def guilty(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names of the hosts that may be blamed."""
        if self.fault is None:
            return ()
        if self.fault.where == "everywhere":
            return tuple(names)
        return tuple(
            sorted(
                {names[self.host], *((names[self.other],) if self.fault.where == "link" else ())}
            )
        )


def fault_draws(faults: Sequence[Fault], rounds: int, hosts: int, seed: int = SEED) -> list[Draw]:
    """Every variant once in each round, on nodes that are drawn."""
    chance = random.Random(f"faults {seed}")
    found: list[Draw] = []
    for _ in range(rounds):
        for fault in faults:
            way = chance.choice(OUTSIDE if fault.outside else WAYS)
            first = (
                1 if fault.cuts and way == "batch" else 0
            )  # cut off from the node on which `ready` runs, it is another matter
            host, other = chance.sample(range(first, hosts), 2)
            found.append(Draw(len(found), way, fault, host, other))
    return found


def healthy_draws(count: int, hosts: int, seed: int = SEED) -> list[Draw]:
    """Healthy runs, two of three with decoys."""
    chance = random.Random(f"healthy {seed}")
    found: list[Draw] = []
    for number in range(count):
        way = chance.choice(WAYS)
        chosen = chance.sample(DECOYS, number % (MOST_DECOYS + 1))
        found.append(
            Draw(number, way, decoys=tuple((decoy, chance.randrange(hosts)) for decoy in chosen))
        )
    return found
