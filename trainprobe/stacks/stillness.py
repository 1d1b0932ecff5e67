"""For how long has a thread got no further? The one judge, for whoever decides on another look and
for whoever concludes.

A thread that sleeps tells its age by itself. One that polls wakes all the time, so that its last
nap says nothing: its wait is as old as the visit to the user's line from which it polls. Looks that
all meet it there may have met one visit or many. They met one where nothing went between it and the
other ranks since before the first look, as far as its collectives go over connections that can be
seen; and where it has used next to no processor for so long that no step of training was among
them.
"""

from __future__ import annotations

from dataclasses import dataclass

HUNG_S = 5.0
"""Nobody is called hung who has waited for less: a slow step of a healthy job looks the same for
so long.
"""
FRESH_S = 1.0
"""Who ran or exchanged data within the last second has not stood for long: a busy job's ranks
sleep for milliseconds.
"""
SWITCHES_PER_LOOK = 2
IDLE_SHARE = 0.02
"""CPU seconds per second that a thread which is only looked at, or only polls, may use."""
WATCHED_S = 30.0
"""Of looks that span so long, one met a step if there were any, or the processor shows it."""


@dataclass(frozen=True)
class Track:
    """What several looks show of one main thread, all in seconds; None is not known.

    `same_place`: its user's own frames are the same in all looks, `span_s` apart. `asleep_s` since
    it last ran, `switches` its voluntary ones between the looks, `cpu_s` its processor time.
    `silent_s` since it last exchanged data with another rank, as of the last look;
    `telling` where its collectives would show there. `age_s` since its process began.
    """

    same_place: bool | None
    looks: int = 1
    span_s: float = 0.0
    asleep_s: float | None = None
    switches: int | None = None
    cpu_s: float | None = None
    runs: bool = False
    silent_s: float | None = None
    telling: bool = False
    age_s: float | None = None


@dataclass(frozen=True)
class Stillness:
    """It has got no further for at least `at_least_s`, and for no longer than `at_most_s` where
    that is known. `wakes`: it polls, or works in between.
    """

    at_least_s: float
    at_most_s: float | None = None
    wakes: bool = False


def stillness(track: Track) -> Stillness:
    """Judge one thread."""
    if track.same_place is not False and not _wakes(track):
        slept = track.span_s if track.same_place and track.switches is not None else 0.0
        return Stillness(_within(max(track.asleep_s or 0.0, slept), track.age_s), track.age_s)
    idle = track.cpu_s is not None and track.cpu_s <= max(0.01, IDLE_SHARE * track.span_s)
    unbroken = track.telling and track.silent_s is not None and track.silent_s >= track.span_s
    one_visit = track.same_place is True and (unbroken or (idle and track.span_s >= WATCHED_S))
    at_least_s = (
        0.0
        if track.same_place is False
        else max(track.asleep_s or 0.0, track.span_s if one_visit else 0.0)
    )
    bounds = [bound for bound in (track.silent_s, track.age_s) if bound is not None]
    return Stillness(_within(at_least_s, track.age_s), min(bounds, default=None), wakes=True)


def slept_through(track: Track) -> bool:
    """Say whether it ran between the looks for nothing but the looks themselves; a look that
    stops a thread wakes it, which is two switches.
    """
    if track.switches is None or track.looks < 2 or track.runs:
        return False
    return track.switches <= SWITCHES_PER_LOOK * (track.looks - 1) and (track.cpu_s or 0.0) <= max(
        0.01, IDLE_SHARE * track.span_s
    )


def _wakes(track: Track) -> bool:
    if track.switches is None or track.looks < 2:
        return track.runs or (track.asleep_s is not None and track.asleep_s < FRESH_S)
    return not slept_through(track)


def _within(age_s: float, bound_s: float | None) -> float:
    """Nobody waits for longer than it lives: the kernel counts a connection's silence from
    before its first byte.
    """
    return age_s if bound_s is None else min(age_s, bound_s)
