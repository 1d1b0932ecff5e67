"""How the rounds of processes are started whose answers are compared."""

from __future__ import annotations

from typing import Callable, List, NamedTuple

from _stress import fleet
from _stress.batches import Batch
from _stress.look import Look
from _stress.subject import Subject


class Rounds(NamedTuple):
    """How processes are started: `fresh()` is a folder for a round."""

    subject: Subject
    look: Look
    batch: Batch
    ranks: int
    backend: str
    seed: int
    fresh: Callable[[], str]

    @property
    def left_s(self) -> float:
        return max(2.0, 0.8 * self.look.left_s())


def on_ranks(rounds: Rounds, job: fleet.Job) -> List[fleet.Answer]:
    wait_s = 5 + 100 * rounds.subject.traits.forward_s
    return fleet.together(job, rounds.ranks, rounds.fresh(), rounds.left_s, rounds.backend, wait_s)


def placed(rounds: Rounds, rank: int) -> Subject:
    """In a rank: the subject on the rank's own device."""
    if rounds.backend == "nccl":
        rounds.subject.device = f"cuda:{max(0, rank)}"
    return rounds.subject
