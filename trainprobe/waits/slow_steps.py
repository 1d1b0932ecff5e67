"""Jobs whose ranks are all slow alike, so that nobody waits for anybody: by one line outside of
torch that takes most of each step, by compiling anew in each step, or by the pace that the job
itself prints.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.facts import Facts, PrintedPace, Samples, SourceSite
from trainprobe.facts.samples import joint_share, line_shares, own_line, spells_of
from trainprobe.stacks import compiling
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.loading import HALF, MOST, step_share
from trainprobe.stacks.spells import share
from trainprobe.waits.printed_steps import last_step_ago_s

# At one line outside of torch no healthy one of some forty jobs of strangers spent more of its time
# than this, and nearly all slow ones without a late rank did.
ON_EACH, STEPS = 0.25, 0.4
# The same of all ranks together, and of the steps where they take turns.
TOGETHER, STEPS_BY_TURNS = 0.8, 0.2
SLOWER = 2.5
"""Times as long as before: no healthy job of strangers printed more than 1.2."""


# Operations of torch that show no frame of their own.
_COMPUTES = re.compile(
    r"\btorch\.(?!save|load|distributed|from_numpy)\w+\(| @ |\bF\.\w+\("
    r"|\.(?:backward|mm|bmm|matmul)\("
)
# A program that sleeps there keeps a pace of its own choice.
_PACES = re.compile(r"(?i)sleep|pace|throttl|delay|rate_?limit|Event\(\)\.wait\(")
# What functions, classes and files that make a rank's input are called.
MAKES_INPUT = re.compile(
    r"(?i)sampl|batch|collat|buffer|data|load|tokeni[sz]|encod|augment|transform|decod|fetch|read"
    r"|parse|shard|stream|preprocess|featur|crop|resize|next"
)
_BY_OTHERS = re.compile(r"/multiprocess(?:ing)?/(?:connection|queues|pool)\.py$")


@dataclass(frozen=True)
class SlowSteps:
    """What all ranks do for most of their time; `place` is the line, "" where it is none."""

    says: str
    place: str = ""
    share: float = 0.0


def slow_steps(facts: Facts, cell: str, ranks: Sequence[int]) -> SlowSteps | None:
    """The first of these that holds for all of the ranks."""
    samples = [one for one in facts.of(Samples, cell=cell) if one.role == "rank"]
    return (
        _recompiling(facts, cell, ranks, samples)
        or _at_one_line(facts, cell, ranks, samples)
        or _told(facts, cell)
    )


def _at_one_line(
    facts: Facts, cell: str, ranks: Sequence[int], samples: Sequence[Samples]
) -> SlowSteps | None:
    """In all ranks, step after step: a single long stay may be an evaluation. Where the ranks go
    there one after the other, as for a lock, they spend the time together.
    """
    place, middle, _ = own_line(samples)
    shares = line_shares(samples, place) if middle >= ON_EACH else {}
    if not shares or set(shares) != set(ranks):
        return None
    together = joint_share(samples, place) if len(ranks) > 1 else 0.0
    by_turns = together >= TOGETHER
    if middle < HALF and not by_turns:
        return None
    line = place.partition(" in ")[0]
    sites = facts.of(SourceSite, cell=cell)
    texts = [one.text for one in sites if Frame("", one.file, one.line).where == line]
    if not texts or any(_COMPUTES.search(text) or _PACES.search(text) for text in texts):
        return None
    if _is_done_by_others(place, samples):
        return None
    least = min(part for part, _ in shares.values())
    steps = STEPS_BY_TURNS if by_turns else STEPS
    if least < ON_EACH or max(part for _, part in shares.values()) < steps:
        return None
    if by_turns and middle < MOST:
        says = (
            f"in {together:.0%} of the time some rank is at {place}, outside of torch, and the"
            " others are there too or wait for it"
        )
        return SlowSteps(says, place, middle)
    who = "all ranks spend" if len(ranks) > 1 else "the rank spends"
    return SlowSteps(f"{who} {middle:.0%} of the time at {place}, outside of torch", place, middle)


def _is_done_by_others(place: str, samples: Sequence[Samples]) -> bool:
    """Do ranks wait there for processes of their own, which do what may well be most of the job,
    such as playing games? Not where that is the making of input.
    """
    stacks = [
        spell.frames
        for one in samples
        for spell in one.spells
        if any(frame.where == place for frame in spell.frames)
    ]
    others = [any(_BY_OTHERS.search(frame.file) for frame in stack) for stack in stacks]
    return bool(others) and all(others) and MAKES_INPUT.search(place) is None


def _recompiling(
    facts: Facts, cell: str, ranks: Sequence[int], samples: Sequence[Samples]
) -> SlowSteps | None:
    """A job that has made steps, and whose ranks compile for most of the time also without the
    longest compilations.
    """
    spells = spells_of(samples, compiling.compiles)
    if set(spells) != set(ranks) or last_step_ago_s(facts, cell) is None:
        return None
    if any(min(share(rows), step_share(rows)) < compiling.MOST for rows in spells.values()):
        return None
    least = min(share(rows) for rows in spells.values())
    return SlowSteps(f"all ranks compile for {least:.0%} of the time, again and again", share=least)


def _told(facts: Facts, cell: str) -> SlowSteps | None:
    told = max(facts.of(PrintedPace, cell=cell), key=lambda one: one.times, default=None)
    if told is None or told.times < SLOWER:
        return None
    says = (
        f"a step takes {told.times:.1f} times as long as at the beginning, by the job's own lines:"
        f" `{told.before}` then, `{told.now}` now"
    )
    return SlowSteps(says)
