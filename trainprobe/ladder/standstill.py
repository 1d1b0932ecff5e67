"""Whether a cell stands still, judged over series of looks: one series shows who waits, a second
whether the others make progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainprobe.collect.thread_history import CellLooks, ThreadHistory

PLACES_CAP = 4
Verdict = Literal["still", "going_on", "look_again"]


@dataclass
class Standstill:
    """Remembers the places of every process over the series of one cell."""

    places: dict[int, list[tuple[object, ...]]] = field(default_factory=dict)
    series: int = 0

    def judge(self, looked: CellLooks, *, quiet_long: bool) -> Verdict:
        """Judge the newest series. `quiet_long` is true when those that wait have shown no sign for
        well over the stall time.

        Nobody moves: still. Somebody computes and nobody waits for it: going on. Somebody computes
        while others wait in a
        collective: look again, and when it is in the same few places of the same call in every
        series, it gets nowhere.
        """
        self.series += 1
        everyone: Sequence[ThreadHistory] = (*looked.by_rank.values(), *looked.workers)
        for each in everyone:
            self.places.setdefault(each.member.pid, []).extend(each.places)
        going = [each for each in everyone if each.moving() in ("moving", "busy")]
        if not going:
            return "still" if looked.moving == "frozen" else "going_on"
        if not any(
            each.moving() == "frozen" and each.waits_for_peers for each in looked.by_rank.values()
        ):
            return "going_on"
        if (
            self.series >= 2
            and quiet_long
            and all(goes_round(self.places[each.member.pid]) for each in going)
        ):
            return "still"
        return "look_again"


def goes_round(places: Sequence[tuple[object, ...]]) -> bool:
    """The same call in all looks, and hardly any other place in it: a loop that waits without
    sleeping.
    """
    if len(places) < 2 or len(set(places)) > PLACES_CAP:
        return False
    shortest = min(len(place) for place in places)
    same = next(
        (depth for depth in range(shortest) if len({place[depth] for place in places}) > 1),
        shortest,
    )
    # Below the common part all of them are in one function, or that part is the whole place of one
    # of them.
    return same > 0 and len({_function(place[same]) for place in places if len(place) > same}) <= 1


def _function(frame: object) -> object:
    return frame[:2] if isinstance(frame, tuple) else frame


def asymmetric(looked: CellLooks, ended: Mapping[int, object]) -> bool:
    """Some ranks wait for peers and others do something else or have left: then who holds up
    whom is clear on any number of ranks.
    """
    waits = [each.waits_for_peers for each in looked.by_rank.values()]
    return any(waits) and (not all(waits) or bool(ended))
