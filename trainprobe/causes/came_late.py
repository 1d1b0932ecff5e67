"""Ranks that came to a collective after another had given up waiting there: they were busy elsewhere, and well."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.scene import Scene
from trainprobe.causes.words import ranks_say
from trainprobe.facts import RankException

# What a rank raises that has waited for as long as its process group allows (stacks.echoes).
GAVE_UP = frozenset({"peer-timeout", "collective-timeout"})
LEAST_S = 2.0  # ranks that fail together are less than that apart


@dataclass(frozen=True)
class CameLate:
    """`ranks` came `after_s` seconds after `gave_up` had raised; `facts` are what they raised then: that the other was gone."""

    ranks: tuple[int, ...]
    after_s: float
    gave_up: RankException
    facts: tuple[RankException, ...]

    @property
    def says(self) -> str:
        waited = f"Rank {self.gave_up.rank} gave up waiting in a collective"
        return f"{waited}; {ranks_say(self.ranks, capital=False)} came to it {self.after_s:.0f} s later"


def came_late(scene: Scene) -> CameLate | None:
    """Return them; None where some rank failed of its own, and where more than half came late."""
    if scene.exceptions(scene.world):
        return None
    echoes = [one for one in scene.exceptions(scene.world, echo=True) if one.at is not None and one.rank is not None and one.role == "rank"]
    gave_up = min((one for one in echoes if one.echo_of in GAVE_UP), key=lambda one: one.at or 0.0, default=None)
    if gave_up is None or gave_up.at is None:
        return None
    late = [one for one in echoes if one.echo_of not in GAVE_UP and (one.at or 0.0) - gave_up.at >= LEAST_S]
    ranks = tuple(sorted({one.rank for one in late if one.rank is not None}))
    if not ranks or 2 * len(ranks) > len(scene.world):
        return None
    return CameLate(ranks, min(one.at or 0.0 for one in late) - gave_up.at, gave_up, tuple(late))
