"""`read()`: evidence in, facts out. It never raises, whatever the evidence holds."""

from __future__ import annotations

from collections.abc import Iterable

from trainprobe.facts.table import Facts, Look, Refusal
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


def read(evidence: Iterable[Evidence]) -> Facts:
    """Parse every record; one that cannot be understood yields nothing and is counted in `Facts.unreadable`."""
    facts: list[Fact] = []
    looked: list[Look] = []
    refused: list[Refusal] = []
    for record in evidence:
        if record.outcome in ("ok", "partial"):
            looked.append(Look(record.kind, record.cell, record.subject.rank, record.id))
        else:
            refused.append(Refusal(record.kind, record.outcome, record.reason, record.subject, record.cell, record.id))
    return Facts(facts, looked=looked, refused=refused)
