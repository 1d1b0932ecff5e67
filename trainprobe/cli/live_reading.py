"""The progress of reading in `explain`, on stderr: one line that overwrites itself on a terminal, a
sentence every few seconds elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainprobe.model.progress import Progress, Silence
from trainprobe.report.phrases import clean

if TYPE_CHECKING:
    from rich.live import Live

SENTENCE_S = 5.0


@contextlib.contextmanager
def reading(*, quiet: bool) -> Iterator[Progress]:
    """Yield the listener that fits stderr, and restore the terminal."""
    if quiet:
        yield Silence()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        line = ReadingLine(sys.stderr)
        try:
            yield line
        finally:
            line.close()
    else:
        yield ReadingSentences(sys.stderr)


class ReadingSentences(Silence):
    """Prints the sentence that comes first, and then one every few seconds, so that a log of a
    long reading stays short.
    """

    def __init__(self, stream: IO[str], every_s: float = SENTENCE_S) -> None:
        self._stream, self._every_s = stream, every_s
        self._printed_at: float | None = None

    def note(self, says: str) -> None:
        """Print the sentence if it is time for one."""
        now = time.monotonic()
        if not says or (self._printed_at is not None and now - self._printed_at < self._every_s):
            return
        self._printed_at = now
        # A reader that went away must not cost the report.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{clean(says)}\n")
            self._stream.flush()


class ReadingLine(Silence):
    """Shows the newest sentence on one line, until an empty one or `close` removes it."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream, self._says = stream, ""
        self._live: Live | None = None

    def note(self, says: str) -> None:
        """Show the sentence in place of the one before."""
        self._says = clean(says)
        if not says:
            self.close()
            return
        with contextlib.suppress(OSError, ValueError):
            if self._live is None:
                self._start()
            else:
                self._live.refresh()

    def close(self) -> None:
        """Take the line away."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError, ValueError):
                live.stop()

    def _start(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(
            file=self._stream,
            force_terminal=True,
            no_color=True,
            markup=False,
            highlight=False,
            emoji=False,
        )
        self._live = Live(
            console=console,
            get_renderable=self._now,  # type: ignore[arg-type] # rich's Text is renderable
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def _now(self) -> object:
        from rich.text import Text

        return Text(self._says, no_wrap=True, overflow="ellipsis")
