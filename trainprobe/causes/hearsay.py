"""What the ranks of a live job printed, in one place for all causes: it supports, and seldom
decides.

Whoever printed an error and lives on has survived it. So its words strengthen a cause that shows
itself otherwise, with few points. What was printed since the last step, and is no traceback, may
also speak for itself, as softly. The words of a rank that is gone are its last, and count in
full. So do those that a rank at the rendezvous says again and again, of why it meets nobody there.
"""

from __future__ import annotations

from dataclasses import replace

from trainprobe.causes.cause import Cause
from trainprobe.causes.network.rendezvous_incomplete import at_the_store
from trainprobe.causes.scene import Scene
from trainprobe.facts import (
    Facts,
    FatalSignal,
    Job,
    LogEvent,
    LogJob,
    Output,
    RankException,
)
from trainprobe.facts.last_words import gone_ranks, leaving_ranks
from trainprobe.model.diagnosis import Weighing
from trainprobe.model.facts import Fact
from trainprobe.waits import SuspectGroup

SUPPORT = 6
"""As much as a finding of lint that is likely right; what was measured has 10 and 13."""


class Hearsay:
    """The scene with and without the words of those who live on."""

    def __init__(self, facts: Facts, group: SuspectGroup) -> None:
        self.scene = self._seen = Scene(facts, group)
        self._ids: frozenset[str] = frozenset()
        self._outputs: frozenset[str] = frozenset()
        self._gone: frozenset[int | None] = frozenset()
        self._retries: frozenset[str] = frozenset()
        job = facts.one(Job, cell=group.cell)
        outputs = facts.of(Output, cell=group.cell)
        if job is None or not outputs or facts.of(LogJob, cell=group.cell):
            return  # of logs that were read beside saved dumps nobody lives on
        self._outputs = frozenset(id_ for fact in outputs for id_ in fact.evidence)
        last = [fact for fact in facts.of(RankException, cell=group.cell) if not fact.handled]
        raised = leaving_ranks(facts.all, job) & {fact.rank for fact in last}
        self._gone = frozenset(gone_ranks(facts.all, job) | raised)
        told = {
            id_ for fact in (*outputs, *last) if fact.rank in self._gone for id_ in fact.evidence
        }
        self._ids = self._outputs - told
        meeting = {thread.rank for thread in at_the_store(self.scene)}
        self._retries = frozenset(
            id_
            for fact in facts.of(LogEvent, cell=group.cell)
            if fact.rank in meeting and fact.count > 1 and not fact.lived_through
            for id_ in fact.evidence
        )
        self._seen = Scene(
            Facts(
                [self._quiet(fact) for fact in facts.all if not self._survived(fact)],
                looked=facts.looks,
                refused=facts.refused(),
                unreadable=facts.unreadable,
            ),
            group,
        )

    def weigh(self, cause: Cause) -> tuple[Weighing, ...]:
        """What was measured, and beside it, softly, what was said."""
        of_meeting = cause.refines == "rendezvous-incomplete"
        measured = tuple(
            one if of_meeting and self._of_retries(one) else self._softly(one)
            for one in cause.weigh(self._seen)
        )
        if self._seen is self.scene or not any(one.points > 0 for one in measured):
            return measured
        told = (one for one in cause.weigh(self.scene) if self._only_said(one))
        return (*measured, *(self._softly(one) for one in told if one not in measured))

    def _survived(self, fact: Fact) -> bool:
        return (
            isinstance(fact, (LogEvent, RankException, FatalSignal))
            # the helper did not survive it
            and not (isinstance(fact, RankException) and fact.of_a_helper)
            and fact.rank not in self._gone
            and bool(fact.evidence)
            and self._outputs.issuperset(fact.evidence)
            and (not isinstance(fact, LogEvent) or fact.lived_through)
        )

    def _quiet(self, fact: Fact) -> Fact:
        said = isinstance(fact, Output) and fact.rank not in self._gone
        return replace(fact, tail="") if said and isinstance(fact, Output) else fact

    def _only_said(self, one: Weighing) -> bool:
        return bool(one.evidence) and self._ids.issuperset(one.evidence)

    def _of_retries(self, one: Weighing) -> bool:
        return bool(one.evidence) and self._retries.issuperset(one.evidence)

    def _softly(self, one: Weighing) -> Weighing:
        if not self._only_said(one):
            return one
        return replace(one, points=max(-SUPPORT, min(SUPPORT, one.points)))
