"""The tries of groups of nodes, the rounds to try next, and the faults that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["passed", "failed", "slow", "timed_out", "not_measured"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "slow", "timed_out", "not_measured")
ARMS = ("tcp", "gloo", "nccl")  # each but the first has the one before as its control
BELOW: Mapping[str, str] = {"gloo": "tcp", "nccl": "gloo"}
# What a failure looked like; the more specific first.
HOWS = (
    "wrong-address",
    "wrong-result",
    "one-way",
    "large-packets",
    "blocked-ports",
    "refused",
    "unreachable",
    "loss",
    "delay",
    "slow",
    "silent",
    "gloo-only",
    "fabric",
    "failed",
)


@dataclass(frozen=True)
class Link:
    """One direction: `a` sends to `b`. `how` is empty where it is good; `rtt_ms` and `mbps` are
    None where not measured.
    """

    a: str
    b: str
    how: str = ""
    says: str = ""
    rtt_ms: float | None = None
    mbps: float | None = None


@dataclass(frozen=True)
class Try:
    """One group tried once.

    `missing` names members that gave no sign of life. Without `links` only the group's outcome is
    known. `measures` holds costs for comparison with peers: rtt_ms, mbps, took_ms. `id` is that of
    the evidence. `rail` is the local rank, None for all of a node.
    """

    members: tuple[str, ...]
    arm: str = "tcp"
    outcome: Outcome = "passed"
    round: int = 0
    attempt: int = 1
    phase: str = "pairs"
    how: str = ""
    says: str = ""
    missing: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    id: str = ""
    rail: int | None = None

    @property
    def bad(self) -> bool:
        return self.outcome in ("failed", "slow", "timed_out")


@dataclass(frozen=True)
class Round:
    """Groups to try at the same time; no node is in two of them. `further` where nothing is open
    and more pairs are tried in addition.
    """

    groups: tuple[tuple[str, ...], ...]
    arm: str
    why: str
    phase: str = "pairs"
    rail: int | None = None
    further: bool = False


@dataclass(frozen=True)
class NodeFault:
    """A node that fails with partners that are good without it. `tries` are the ids of the
    evidence.
    """

    host: str
    how: str = "failed"
    says: str = ""
    tries: tuple[str, ...] = ()
    arm: str = "tcp"
    certain: bool = True


@dataclass(frozen=True)
class LinkFault:
    """Two nodes that are good with others and fail with each other; `direction` is the sender and
    the receiver where only that way fails.

    Not `certain` where one of the two nodes may be at fault instead: too few partners or tries.
    """

    a: str
    b: str
    direction: tuple[str, ...] = ()
    how: str = "failed"
    says: str = ""
    tries: tuple[str, ...] = ()
    arm: str = "tcp"
    certain: bool = True


@dataclass(frozen=True)
class SizeFault:
    """Groups fail from `size` members on, and pass below. Without one of `members` a group of that
    size passes; empty where the size alone matters, or the member is not known.
    """

    size: int
    members: tuple[str, ...] = ()
    says: str = ""
    tries: tuple[str, ...] = ()
    arm: str = "tcp"


@dataclass(frozen=True)
class Shared:
    """No pair passes, or camps pass among themselves and never across: leaving nodes out would not
    help. `camps` is empty in the first case.
    """

    hosts: tuple[str, ...]
    how: str = "failed"
    says: str = ""
    tries: tuple[str, ...] = ()
    camps: tuple[tuple[str, ...], ...] = ()
    arm: str = "tcp"


@dataclass(frozen=True)
class Verdict:
    """The conclusion from all tries. `once` are pairs that failed and did not fail again; `left`
    names what was not tried.
    """

    nodes: tuple[NodeFault, ...] = ()
    links: tuple[LinkFault, ...] = ()
    sizes: tuple[SizeFault, ...] = ()
    shared: tuple[Shared, ...] = ()
    rails: tuple[tuple[int, str], ...] = ()
    once: tuple[tuple[str, ...], ...] = ()
    tried: int = 0
    rounds: int = 0
    left: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.nodes or self.links or self.sizes or self.shared or self.rails)


@dataclass(frozen=True)
class Plan:
    """What to try. `arm` is the traffic; `control` adds the arm below it for what fails.

    `breadth` rounds of disjoint pairs are tried where all pass: two cover the ring of neighbours.
    Each is repeated `repeats` times, for intermittent faults. `again` is how often each end of a
    pair that failed once is tried with others before it is cleared. `rotations` are tried before
    the absence of a passing pair is called a common cause. `ladder` adds growing groups where all
    pairs pass; `rails` adds local ranks.
    """

    arm: str = "tcp"
    control: bool = True
    breadth: int = 2
    repeats: int = 1
    again: int = 2
    rotations: int = 3
    ladder: bool = False
    rails: int = 0
    most_rounds: int = 64


def telling(hows: Sequence[str]) -> str:
    """The most telling of several: the commonest, and of equals the first in HOWS."""
    known = [how for how in hows if how in HOWS]
    return min(known, key=lambda how: (-known.count(how), HOWS.index(how)), default="failed")
