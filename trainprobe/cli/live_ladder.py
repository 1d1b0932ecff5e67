"""The climb as it happens, on stderr: a live line on a terminal, plain lines elsewhere, nothing
with --quiet.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from trainprobe.facts.cell_measures import size_of
from trainprobe.model.progress import Progress, Silence
from trainprobe.report.ladder_section import OUTCOME_STYLE
from trainprobe.report.lines import Line, Span, span
from trainprobe.report.phrases import clean, columns, duration
from trainprobe.report.terminal import show, styled, wants_colour

if TYPE_CHECKING:
    from rich.live import Live

    from trainprobe.model.probes import ProbeSpec

REFRESHES_PER_S = 4


@contextlib.contextmanager
def watching(*, quiet: bool, no_color: bool) -> Iterator[Progress]:
    """Yield the listener that fits stderr, and restore the terminal."""
    colour = wants_colour(sys.stderr, os.environ, asked_not=no_color)
    if quiet:
        yield Silence()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with LiveLadder(sys.stderr, colour=colour) as ladder:
            yield ladder
    else:
        yield PlainLadder(sys.stderr)


def named(cell: str) -> str:
    """The name of a cell for a reader: `4 ranks x 1000 rows, workers=0` where it has rows or a
    knob, else unchanged.
    """
    size = size_of(cell)
    if not size.ranks or (size.rows is None and not size.knob):
        return clean(cell)
    ranks = f"{size.ranks} rank{'' if size.ranks == 1 else 's'}"
    rows = "" if size.rows is None else f" x {size.rows} rows"
    return clean(f"{ranks}{rows}{f', {size.knob}' if size.knob else ''}")


def ended_line(cell: str, outcome: str, took_s: float, says: str, names: int) -> Line:
    """Return the line of a cell that is over; one that was never started shows no time."""
    took = duration(took_s) if outcome not in ("skipped", "not_measured") else ""
    style = OUTCOME_STYLE.get(outcome, "plain")
    return (
        Span(f"{named(cell):<{names}}  "),
        Span(f"{clean(outcome):<12}", style),
        Span(f"{took:>11}  "),
        span(says if outcome != "passed" else "", "faint"),
    )


class PlainLadder:
    """One line where a cell begins and one where it ends, so that a log shows the progress."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._names = 16

    def plan(self, rows: Sequence[ProbeSpec]) -> None:
        """Learn how wide the names are."""
        self._names = _name_columns(rows)

    def cell_began(
        self, probe: str, cell: str, nproc: int, question: str, deadline_s: float
    ) -> None:
        """Say which question is being asked, and for how long at most."""
        del probe, nproc
        start = Span(f"{named(cell):<{self._names}}  began           ")
        self._print((start, span(question), Span(f" (at most {duration(deadline_s)})")))

    def cell_ended(self, probe: str, cell: str, outcome: str, took_s: float, says: str) -> None:
        """Say how it ended."""
        del probe
        self._print(ended_line(cell, outcome, took_s, says, self._names))

    def note(self, says: str) -> None:
        """Print the sentence."""
        self._print((span(says),))

    def _print(self, line: Line) -> None:
        # A reader that went away must not cost the diagnosis.
        with contextlib.suppress(OSError, ValueError):
            show([line], self._stream, colour=False)


class LiveLadder:
    """A line for each finished cell; below them the running cells, each with its question and its
    time against the deadline.
    """

    def __init__(self, stream: IO[str], *, colour: bool) -> None:
        from rich.console import Console

        self._console = Console(
            file=stream,
            force_terminal=True,
            no_color=not colour,
            markup=False,
            highlight=False,
            emoji=False,
        )
        self._running: dict[str, tuple[float, str, float]] = {}
        self._names = 16
        self._live: Live | None = None

    def __enter__(self) -> LiveLadder:  # noqa: PYI034 - Self came with 3.11
        from rich.live import Live

        self._live = Live(
            console=self._console,
            get_renderable=self._now,  # type: ignore[arg-type] # rich's Text is renderable
            transient=True,
            refresh_per_second=REFRESHES_PER_S,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._running.clear()
        if self._live is not None:
            with contextlib.suppress(OSError, ValueError):
                self._live.stop()

    def plan(self, rows: Sequence[ProbeSpec]) -> None:
        """Learn how wide the names are."""
        self._names = _name_columns(rows)

    def cell_began(
        self, probe: str, cell: str, nproc: int, question: str, deadline_s: float
    ) -> None:
        """Show the cell below the lines of those that are over."""
        del probe, nproc
        self._running[cell] = (time.monotonic(), question, deadline_s)

    def cell_ended(self, probe: str, cell: str, outcome: str, took_s: float, says: str) -> None:
        """Turn the cell into a line that stays."""
        del probe
        self._running.pop(cell, None)
        self._print(ended_line(cell, outcome, took_s, says, self._names))

    def note(self, says: str) -> None:
        """Print the sentence above what runs."""
        self._print((span(says, "warn"),))

    def _print(self, line: Line) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._live is not None:
                # or the line of a cell that is over would be drawn once more below this one
                self._live.refresh()
            text = styled(line)
            text.truncate(self._console.width, overflow="ellipsis")
            self._console.print(text, soft_wrap=True)

    def _now(self) -> object:
        from rich.text import Text

        lines = []
        for cell, (began, question, deadline_s) in list(self._running.items()):
            time_now = f"{duration(time.monotonic() - began)} of at most {duration(deadline_s)}"
            text = clean(question)
            room = self._console.width - self._names - columns(time_now) - 5
            text = text if columns(text) <= room else text[: max(0, room - 1)] + "…"
            start = Span(f"{named(cell):<{self._names}}  ", "strong")
            lines.append(styled((start, Span(f"{text}  "), Span(time_now, "faint"))))
        return Text("\n", no_wrap=True).join(lines)


def _name_columns(rows: Sequence[ProbeSpec]) -> int:
    """Room for the longest name and a size such as @128."""
    return min(32, max([len(clean(row.name)) for row in rows], default=12) + 4)
