"""How each cell of the ladder came out, in the ladder's own words."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.diagnosis import Measure
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Rung(Fact):
    """One cell. `ranks` are those that did not pass; `unmet` says why it was skipped (gpu, script, lower-rung:<probe> …)."""

    rung: int = 0
    probe: str = ""
    question: str = ""
    nproc: int = 0
    outcome: str = "not_measured"
    took_s: float = 0.0
    deadline_s: float = 0.0
    says: str = ""
    ranks: tuple[int, ...] = ()
    unmet: str = ""
    skipped_because: str = ""
    stopped_because: str = ""
    elapsed_s: float | None = None
    measures: tuple[Measure, ...] = ()
