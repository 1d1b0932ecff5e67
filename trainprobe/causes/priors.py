"""Priors: how likely a cause is before any evidence of the case, and the level of `unknown`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from trainprobe.shipped import read_yaml

SPREAD = 10.0  # points: priors may not lie further apart than this, so that evidence always can win


@dataclass(frozen=True)
class Prior:
    """Points of one cause by mode (hang, crash, slow, check), and their source."""

    points: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Priors:
    """All priors with the level of `unknown` (points) and the temperature of the softmax."""

    unknown: float
    temperature: float
    causes: Mapping[str, Prior] = field(default_factory=dict)

    def prior(self, cause_id: str, mode: str) -> float:
        """Points before any evidence; 0, the average, without an entry (plugins)."""
        prior = self.causes.get(cause_id)
        return prior.points.get(mode, 0.0) if prior is not None else 0.0


@functools.cache
def load_priors() -> Priors:
    """Return the priors that come with trainprobe."""
    return parse(resources.files(__package__).joinpath("priors.yaml").read_text(encoding="utf-8"))


def parse(text: str) -> Priors:
    """Read `priors.yaml`. Raises ValueError for a missing source or a spread that is too wide."""
    data = read_yaml(text)
    if (
        not isinstance(data, Mapping)
        or not isinstance(data.get("levels"), Mapping)
        or not isinstance(data.get("causes"), Mapping)
    ):
        raise ValueError("priors: expected `levels` and `causes`")
    levels = {name: _number(data["levels"], name) for name in ("unknown", "temperature")}
    if levels["temperature"] <= 0:
        raise ValueError("priors: the temperature must be above 0")
    causes = {
        str(cause_id): _prior(str(cause_id), entry) for cause_id, entry in data["causes"].items()
    }
    values = [points for prior in causes.values() for points in prior.points.values()]
    if values and max(values) - min(values) > SPREAD:
        raise ValueError(
            f"priors: {min(values):g} to {max(values):g} points is a wider spread than {SPREAD:g}"
        )
    return Priors(**levels, causes=causes)


def _prior(cause_id: str, entry: Any) -> Prior:
    if not isinstance(entry, Mapping) or not entry.get("source"):
        raise ValueError(f"priors: {cause_id} needs points by mode and a source")
    points = {str(mode): _number(entry, mode) for mode in entry if mode != "source"}
    return Prior(points, str(entry["source"]))


def _number(entry: Mapping[str, Any], name: str) -> float:
    value = entry.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"priors: {name} must be a number, not {value!r}")
    return float(value)
