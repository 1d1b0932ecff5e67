"""The base of every fact: small, typed, with the ids of the evidence that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Fact:
    """A parsed statement. `evidence` holds ids such as E12; `cell` is the launch it was seen in;
    `rank` None means the host or the job.
    """

    evidence: Tuple[str, ...] = ()
    cell: str = ""
    rank: Optional[int] = None
