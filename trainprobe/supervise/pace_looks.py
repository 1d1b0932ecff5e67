"""When is a job that goes on worth a look at its pace? Pure.

A look shows who comes last to the collectives, also where that rank sleeps or waits for a disk, of
which its steps tell nothing. A rank may become slow at any time, so there is a look again whenever
the job has gone on for some times as long: some ten in a day.
"""

from __future__ import annotations

# The first look: after so many steps or, where none are said, seconds.
FIRST_STEPS, FIRST_S = 40, 60.0
TIMES = 3.0  # as many steps, or seconds, until the next
UNANSWERED_TIMES = 1.5  # where a crowded machine left it no time, or a stall ended it
APART_S = 30.0


class PaceLooks:
    """The looks at the pace of one job: `steps` are those that all of its ranks have ended, and it
    has gone on for `goes_on_s`.
    """

    def __init__(self) -> None:
        self._steps, self._after_s = float(FIRST_STEPS), FIRST_S
        self._not_before_s = 0.0
        self._news = False

    def due(self, steps: int, goes_on_s: float) -> bool:
        """Is it time for a look?"""
        if steps < FIRST_STEPS and goes_on_s < FIRST_S:
            return False
        settled = steps >= self._steps or goes_on_s >= self._after_s
        return self._news or (settled and goes_on_s >= self._not_before_s)

    def begun(self) -> None:
        """A look has begun."""
        self._news = False

    def ended(self, steps: int, goes_on_s: float, *, answered: bool) -> None:
        """A look has ended; `answered` where it could tell anything."""
        times = TIMES if answered else UNANSWERED_TIMES
        self._steps = times * max(steps, FIRST_STEPS)
        self._after_s = times * max(goes_on_s, FIRST_S)
        self._not_before_s = goes_on_s + APART_S

    def want(self) -> None:
        """There is something that a look may explain."""
        self._news = True
