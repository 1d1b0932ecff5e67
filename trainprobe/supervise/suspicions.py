"""What a look answers to a suspicion: an alarm, another look, or patience. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from trainprobe.supervise.rhythm import Suspicion

# A look that finds no hang is followed by one when the pause has become so much longer, ...
LONGER, LONGER_S = 1.5, 5.0
# ... sooner where it could not tell, and at once where it found a hang but was not sure.
OPEN_LONGER, OPEN_LONGER_S = 1.3, 2.0
AGAIN_S = 0.5
# A wait that may end by itself is told when it is so old: a lock, an answer or a tool of some
# seconds is no hang. Until then it costs no look to see that nobody has moved.
OUTLASTED_S = 9.0
# One that seems to wait, and uses a processor all the time, is believed to wait when it has done so
# for long.
WORKS_S = 30.0
# Looks may cost so many seconds of processor time at once, and this share of what the job takes.
ALLOWED_S, ALLOWED_SHARE = 60.0, 0.0005
DEAR = 3.0
# Nothing has moved for so long, and looks could not tell why: that is worth a word too.
UNSEEN_S, UNSEEN_LOOKS = 60.0, 2

ALONE_S = 600.0  # but not for ever

Answer = Literal["hung", "held", "unseen", "slow", "again", "patience"]


@dataclass
class Doubt:
    """One pause, and what looks have said of it. `held`: it is a hang if the ranks that were quiet
    then, and since when, remain so. Those in `polling` may move, but not all the time. `held_from`
    is when the wait began that the look saw, which may be later than the pause. `may_last_s` is
    that of the suspicion.
    """

    since: float
    due_s: float = 0.0
    hung: int = 0
    open: int = 0
    told: bool = False
    held: Mapping[int, float] | None = None
    held_from: float = 0.0
    polling: Collection[int] = ()
    may_last_s: float = 0.0


class Suspicions:
    """Decides when to look, and what the looks mean.

    `sure` asks for two looks that find a hang, one after the other: for a policy that ends the job.
    """

    def __init__(self, *, sure: bool = False) -> None:
        self._sure = sure
        self._doubt: Doubt | None = None
        self._spent_s, self._allowed_s = 0.0, ALLOWED_S

    def due(self, suspicion: Suspicion | None, at: float, job_cpu_s: float = 0.0) -> bool:
        """Is it time to look because of `suspicion`? `job_cpu_s` is what the job has taken yet."""
        self._allowed_s = ALLOWED_S + ALLOWED_SHARE * job_cpu_s
        if suspicion is None or (self._doubt is not None and self._doubt.held is not None):
            return False
        if self._doubt is None or suspicion.since > self._doubt.since + 0.01:
            dear = self._spent_s > self._allowed_s
            self._doubt = Doubt(suspicion.since, may_last_s=suspicion.may_last_s)
            if dear:
                self._doubt.due_s = DEAR * (at - suspicion.since)
        return not self._doubt.told and at - self._doubt.since >= self._doubt.due_s

    def answered(
        self,
        verdict: str,
        at: float,
        *,
        conclusive: bool,
        cpu_s: float,
        works: bool = True,
        open_s: float | None = None,
        own_waits: Collection[int] = (),
        quiet: Mapping[int, float] = MappingProxyType({}),
        over: bool = False,
    ) -> Answer:
        """What the verdict of a look, which ended at `at`, means. `works`: it saw a rank that does
        something, so that the others may wait for it. `open_s`: what it found may
        end by itself, and has lasted so long (inf where nobody knows);
        then `quiet` ranks, and since when, are those that must not move if it is a hang. Those in
        `own_waits` may poll, which looks like work on a crowded machine, while others wait.
        `over`: the pause was, before the look was.
        """
        self._spent_s += cpu_s
        doubt = self._doubt
        if doubt is None:
            return "patience"
        if over:
            self._doubt = None
            return "patience"
        age_s = at - doubt.since
        if verdict == "hung":
            doubt.hung += 1
            if doubt.hung > 1 or (conclusive and not self._sure):
                doubt.held_from = max(doubt.since, at - (open_s or 0.0))
                lasted_s = at - doubt.held_from
                young = _young(lasted_s, own_waits, quiet, doubt.may_last_s)
                if open_s is not None and quiet and young:
                    waiting = {rank: at for rank, at in quiet.items() if rank not in own_waits}
                    doubt.held, doubt.polling = (waiting, own_waits) if waiting else (quiet, ())
                    return "held"
                doubt.told = True
                return "hung"
            doubt.due_s = age_s + AGAIN_S
            return "again"
        doubt.hung = 0
        if verdict in ("undetermined", ""):
            doubt.open += 1
            doubt.due_s = age_s + OPEN_LONGER_S
            if doubt.open > 1:
                doubt.due_s = max(OPEN_LONGER * age_s, doubt.due_s)
            if doubt.open > 3:
                doubt.due_s = max(LONGER * age_s, age_s + LONGER_S)
            if doubt.open >= UNSEEN_LOOKS and age_s >= UNSEEN_S:
                doubt.told = True
                return "unseen"
            return "patience"
        if works:
            doubt.due_s = max(LONGER * age_s, age_s + LONGER_S)
        else:  # all wait, and have not waited for long
            doubt.due_s = max(OPEN_LONGER * age_s, age_s + OPEN_LONGER_S)
        # a rank that works alone while the others wait writes a checkpoint, or evaluates
        return "slow" if verdict == "slow" and age_s >= ALONE_S else "patience"

    def outlasted(self, at: float, quiet: Mapping[int, float]) -> bool:
        """Is the hang that was held now old enough to be told? If one of its ranks has moved, it
        was none, and the next look may come.
        """
        doubt = self._doubt
        if doubt is None or doubt.held is None:
            return False
        age_s = at - doubt.since
        moved = any(quiet.get(rank) != since for rank, since in doubt.held.items())
        if moved or age_s >= max(
            WORKS_S, doubt.may_last_s + AGAIN_S
        ):  # what the look saw is old by then
            doubt.held, doubt.hung = None, 0
            return False
        if _young(at - doubt.held_from, doubt.polling, quiet, doubt.may_last_s):
            return False
        doubt.held, doubt.told = None, True
        return True

    @property
    def alarmed(self) -> bool:
        """Has the pause that goes on been told?"""
        return self._doubt is not None and self._doubt.told

    @property
    def since(self) -> float:
        """Since when the last doubtful pause lasts (monotonic)."""
        return self._doubt.since if self._doubt is not None else 0.0


def _young(
    age_s: float, polling: Collection[int], quiet: Mapping[int, float], may_last_s: float
) -> bool:
    works = any(rank not in quiet for rank in polling)
    return age_s < max(OUTLASTED_S, may_last_s) or (works and age_s < WORKS_S)
