"""What the probes answered and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class ProbeResult(Fact):
    """`answer` is yes, no, cannot or empty when the probe never gave one.

    `open_phase` is the phase that began and did not end, empty where all did. `bad_lines` counts lines that were no events.
    """

    probe: str = ""
    answer: str = ""
    says: str = ""
    open_phase: str = ""
    open_since: float | None = None
    bad_lines: int = 0
    bad_sample: str = ""
    cut: bool = False


@dataclass(frozen=True)
class Measured(Fact):
    """A number that a probe measured. `labels` holds what else stood in the event (op, size_bytes, workers …)."""

    probe: str = ""
    name: str = ""
    value: float = 0.0
    unit: str = ""
    threshold: float | None = None
    source: str = ""
    who: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbeFailure(Fact):
    """A `fail` event of a probe."""

    probe: str = ""
    says: str = ""
    phase: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
