"""What the host and environment probes checked."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class HostCheck(Fact):
    """`status` is ok, warn, fail or unknown; `value` is what was found, as text; `fix` what to type."""

    name: str = ""
    status: str = "unknown"
    value: str = ""
    says: str = ""
    fix: str = ""
    probe: str = ""
