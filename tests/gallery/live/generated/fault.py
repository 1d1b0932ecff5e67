"""What a mechanism gets and what it gives: a situation, and the fault that it makes of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

HUNG = ("hung",)
SLOW = ("slow",)
HEALTHY = ("healthy",)
MAIN = ("loop", "after", "eval", "ckpt", "metrics", "hook")  # places in the rank's own process
DATA = ("getitem", "collate")
LASTING = (
    "torchrun",
    "torchrun-logs",
    "module",
    "processes",
    "bash",
    "popen",
    "spawn",
    "accelerate",
)
# Where one rank may end and the launcher neither ends nor kills the others.
PATIENT = ("bash", "popen", "processes")


@dataclass(frozen=True)
class Situation:
    """Where a fault shall stand. `when` is an expression, true at that rank from that step on;
    `who` is the part of it about the rank.
    """

    rng: random.Random
    framework: str
    launcher: str
    world: int
    rank: int
    place: str
    step: int
    in_worker: bool
    when: str
    who: str


@dataclass(frozen=True)
class Act:
    """What is done to the job from outside: a signal for one rank, a child of it that does its
    loading, or a helper that it started.
    """

    signal: str  # STOP or KILL
    whom: str  # rank, worker or helper
    rank: int
    after_steps: int = 8
    once_exists: str = ""  # a file of the job


@dataclass(frozen=True)
class Fault:
    """The code of a fault and the truth about it. `ranks` are the sets that are right."""

    cause: str
    ranks: Sequence[Sequence[int]]
    verdicts: tuple[str, ...] = HUNG
    also: tuple[str, ...] = ()
    code: str = ""  # for the hole of the situation's place
    definitions: str = ""  # before the first function of the same file
    imports: str = ""
    inserts: Mapping[str, str] = field(default_factory=dict)  # for other holes
    files: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()  # files that run on their own before the job starts
    act: Act | None = None
    settled: str = "still"  # or: advancing, slow
    still_s: float = 7.0  # without a step before the look; healthy jobs pause for 4 s at most
    first_steps: int = -1  # steps that are made before the fault; -1: as the situation says
    environ: Mapping[str, str] = field(default_factory=dict)
    world_says: int = 0  # the world size that each rank is told, where it is not the true one
    port_taken: bool = False


@dataclass(frozen=True)
class Mechanism:
    """One way to fall ill, or to stay healthy, and where it may be put."""

    name: str
    family: str
    make: Callable[[Situation], Fault]
    places: tuple[str, ...] = MAIN
    frameworks: tuple[str, ...] = ()  # () for all
    launchers: tuple[str, ...] = ()
    least_world: int = 2
    rank: int | None = None  # the only rank, where there is one
    workers: bool = False  # needs loader workers
    options: Mapping[str, str] = field(default_factory=dict)  # of the base


ALL: dict[str, Mechanism] = {}


def mechanism(
    family: str,
    *,
    places: tuple[str, ...] = MAIN,
    frameworks: tuple[str, ...] = (),
    launchers: tuple[str, ...] = (),
    least_world: int = 2,
    rank: int | None = None,
    workers: bool = False,
    options: Mapping[str, str] | None = None,
) -> Callable[[Callable[[Situation], Fault]], Callable[[Situation], Fault]]:
    """Enter a function into the list of mechanisms, under its own name."""

    def enter(make: Callable[[Situation], Fault]) -> Callable[[Situation], Fault]:
        name = make.__name__
        ALL[name] = Mechanism(
            name, family, make, places, frameworks, launchers, least_world, rank, workers,
            options or {},
        )  # fmt: skip
        return make

    return enter


def one(rank: int) -> list[list[int]]:
    return [[rank]]


def minority(rank: int, world: int) -> list[list[int]]:
    """One rank against the others; of two equal camps both may be named."""
    return [[rank]] if world > 2 else [[rank], [0, 1]]


def under(condition: str, code: str) -> str:
    body = "\n".join(f"    {line}" for line in code.strip("\n").splitlines())
    return f"if {condition}:\n{body}\n"
