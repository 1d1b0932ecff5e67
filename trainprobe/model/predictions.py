"""What the planned size will do, as the report tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class Prediction:
    """What a number will be at the planned size, from smaller ones.

    `at` and `hits_at` are sizes by name (rows, ranks, workers, step); `axis` is the one that
    `points` and `curve` grow over. Numbers are in `unit`;
    `low` and `high` hold the value in 90 of 100 cases, and all three are None where the measured
    sizes allow no prediction, which `says` gives the reason of.
    `points` are (size, value) as measured, `curve` (size, value, low, high) of the law, both for
    the `measured` ranks and workers; `times` is the factor from these to the planned ones, and
    `basis` says where it comes from. `exponent` is the power of the growth beyond the largest size,
    `steep` whether that is above a sort's (None: open). `probability` is that of passing `limit`,
    `will_hit` whether it is announced.
    `copies` is the share of the data's memory that each loader worker holds again, None where
    unknown; `safe_workers` the most per rank that this limit bears at the planned rows. `will_hit`
    is also true for time that is too long for growth faster than the data.
    """

    name: str
    unit: str = ""
    axis: str = "rows"
    law: str = ""
    at: Mapping[str, int] = field(default_factory=dict)
    value: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None
    limit: Optional[float] = None
    limit_name: str = ""
    probability: Optional[float] = None
    will_hit: bool = False
    hits_at: Mapping[str, int] = field(default_factory=dict)
    exponent: Optional[float] = None
    steep: Optional[bool] = None
    measured: Mapping[str, int] = field(default_factory=dict)
    times: float = 1.0
    basis: str = ""
    copies: Optional[float] = None
    safe_workers: Optional[int] = None
    points: Tuple[Tuple[float, ...], ...] = ()
    curve: Tuple[Tuple[float, ...], ...] = ()
    probe: str = ""
    cell: str = ""
    says: str = ""
    evidence: Tuple[str, ...] = ()
