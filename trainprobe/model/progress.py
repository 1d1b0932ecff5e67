"""What a climbing ladder tells whoever watches it. Gathering calls it, the command line
implements it.
"""

from __future__ import annotations

from typing import Protocol, Sequence

from trainprobe.model.probes import ProbeSpec


class Progress(Protocol):
    """A listener. Its methods return at once and never raise: a broken terminal must not cost a
    diagnosis.
    """

    def plan(self, rows: Sequence[ProbeSpec]) -> None:
        """The rungs that will be climbed, lowest first; called once."""

    def cell_began(
        self, probe: str, cell: str, nproc: int, question: str, deadline_s: float
    ) -> None:
        """A cell (`user_script@4`: one launch of one rung) was started; it is over after at most
        `deadline_s` seconds.
        """

    def cell_ended(self, probe: str, cell: str, outcome: str, took_s: float, says: str) -> None:
        """A cell is over, or was never started (outcome `skipped` or `not_measured`, without a
        `cell_began`).
        """

    def note(self, says: str) -> None:
        """One sentence about something beside the ladder: a plugin that did not load, children
        being stopped; an empty one takes the last back.
        """


class Silence:
    """The listener that ignores everything."""

    def plan(self, rows: Sequence[ProbeSpec]) -> None:
        """Ignore it."""

    def cell_began(
        self, probe: str, cell: str, nproc: int, question: str, deadline_s: float
    ) -> None:
        """Ignore it."""

    def cell_ended(self, probe: str, cell: str, outcome: str, took_s: float, says: str) -> None:
        """Ignore it."""

    def note(self, says: str) -> None:
        """Ignore it."""
