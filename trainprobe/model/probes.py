"""What a probe says of itself in its header block, read as text and never executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Tuple


@dataclass(frozen=True)
class ProbeSpec:
    """One rung of the ladder.

    `rung` orders the ladder, lowest first. `scope` is `host` (one process) or `ranks` (one process
    per rank);
    `needs` names what must be there (torch, gpu, nccl, gloo, script, ranks>=2); `after` names the
    rungs without which this one means nothing. `timeout_s` is the deadline of one launch in
    seconds.
    `climbs` lists what grows over its cells: `ranks` (1, 2, 4 … N) or nothing.
    """

    name: str
    rung: int
    question: str
    program: str = ""
    scope: Literal["host", "ranks"] = "host"
    needs: Tuple[str, ...] = ()
    timeout_s: float = 60.0
    climbs: Tuple[str, ...] = ()
    after: Tuple[str, ...] = ()
    means: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
