"""For how long has a thread made no progress? Both the code that decides on another look and the
code that judges ask here.

For a sleeping thread the kernel gives the time. A polling thread wakes all the time, so its last
sleep says nothing: its wait is as old as its visit to the user's line from which it polls. Looks
that all find it there may have found one visit or several. It was one visit if the thread exchanged
no data with other ranks since before the first look, provided that its collectives use connections
that can be seen; or if it used next to no processor for longer than a training step takes.
"""

from __future__ import annotations

from dataclasses import dataclass

HUNG_S = 5.0
"""A rank that has waited for less is not called hung: a slow step of a healthy job looks alike."""
ASKS_PER_S = 50.0
"""Of 200 by which a thread of Python asks for the interpreter lock while another one keeps it."""
FRESH_S = 1.0
"""A rank that ran or exchanged data within the last second makes progress: the ranks of a busy job
sleep for milliseconds.
"""
SWITCHES_PER_LOOK = 2
IDLE_SHARE = 0.02
"""CPU seconds per second that a thread which is only looked at, or only polls, may use."""
WATCHED_S = 30.0
"""Over such a span a training step would show, in a look or as processor time."""


@dataclass(frozen=True)
class Track:
    """What several looks show of one main thread, all in seconds; None is not known.

    `same_place`: the user's frames are the same in all looks, which span `span_s`. `asleep_s`:
    since it last ran. `switches`, `cpu_s`: voluntary switches and processor time between the
    looks. `silent_s`: since it last exchanged data with another rank, as of the last look;
    `telling`: its collectives would show there. `age_s`: since its process began.
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
    """It has made no progress for at least `at_least_s`, and for at most `at_most_s` where that is
    known. `wakes`: it polls, or works in between.
    """

    at_least_s: float
    at_most_s: float | None = None
    wakes: bool = False


def stillness(track: Track) -> Stillness:
    """Judge one thread."""
    if track.same_place is not False and not _wakes(track):
        slept = track.span_s if track.same_place and track.switches is not None else 0.0
        return Stillness(_within(max(track.asleep_s or 0.0, slept), track.age_s), track.age_s)
    idle = track.cpu_s is not None and _is_idle(track.cpu_s, track)
    unbroken = track.telling and track.silent_s is not None and track.silent_s >= track.span_s
    one_visit = track.same_place is True and (unbroken or (idle and track.span_s >= WATCHED_S))
    at_least_s = max(track.asleep_s or 0.0, track.span_s if one_visit else 0.0)
    if track.same_place is False:
        at_least_s = 0.0
    bounds = [bound for bound in (track.silent_s, track.age_s) if bound is not None]
    return Stillness(_within(at_least_s, track.age_s), min(bounds, default=None), wakes=True)


def slept_through(track: Track) -> bool:
    """Did only the looks wake it? A look that stops a thread costs two switches."""
    if track.switches is None or track.looks < 2 or track.runs:
        return False
    few = track.switches <= SWITCHES_PER_LOOK * (track.looks - 1)
    return few and _is_idle(track.cpu_s or 0.0, track)


def _is_idle(cpu_s: float, track: Track) -> bool:
    return cpu_s <= max(0.01, IDLE_SHARE * track.span_s)


def _wakes(track: Track) -> bool:
    if track.switches is None or track.looks < 2:
        return track.runs or (track.asleep_s is not None and track.asleep_s < FRESH_S)
    return not slept_through(track)


def _within(age_s: float, bound_s: float | None) -> float:
    """A thread cannot wait for longer than its process lives: the kernel counts a connection's
    silence from before its first byte.
    """
    return age_s if bound_s is None else min(age_s, bound_s)
