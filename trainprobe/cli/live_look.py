"""What a look at a live job says on stderr: nothing in the first second, then what it is doing."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO

from trainprobe.model.probes import ProbeSpec
from trainprobe.model.progress import Progress, Silence

PATIENCE_S = 1.0


@contextlib.contextmanager
def looking(*, quiet: bool, patience_s: float = PATIENCE_S) -> Iterator[Progress]:
    """Give a listener that speaks up after `patience_s`, and is silent with `quiet`."""
    if quiet:
        yield Silence()
        return
    notes = LateNotes(sys.stderr, patience_s)
    try:
        yield notes
    finally:
        notes.close()


class LateNotes:
    """Keeps the newest sentence for the first second, so that a quick look says nothing, and
    prints at once from then on.
    """

    def __init__(self, stream: IO[str], patience_s: float = PATIENCE_S) -> None:
        self._stream, self._kept = stream, ""
        self._lock = threading.Lock()
        self._speaks_at = time.monotonic() + patience_s
        self._timer = threading.Timer(patience_s, self._speak)
        self._timer.daemon = True
        self._timer.start()

    def plan(self, rows: Sequence[ProbeSpec]) -> None:
        """Ignore it: there are no rungs."""

    def cell_began(
        self, probe: str, cell: str, nproc: int, question: str, deadline_s: float
    ) -> None:
        """Ignore it: there are no cells."""

    def cell_ended(self, probe: str, cell: str, outcome: str, took_s: float, says: str) -> None:
        """Ignore it: there are no cells."""

    def note(self, says: str) -> None:
        """Print the sentence, or keep it for the end of the first second."""
        with self._lock:
            self._kept = says
        if time.monotonic() >= self._speaks_at:
            self._speak()

    def close(self) -> None:
        """Say no more."""
        self._timer.cancel()
        with self._lock:
            self._kept = ""

    def _speak(self) -> None:
        from trainprobe.report.phrases import clean

        with self._lock:
            says, self._kept = self._kept, ""
            if says:
                with contextlib.suppress(
                    OSError, ValueError
                ):  # a reader that went away must not cost the look
                    self._stream.write(f"{clean(says)}\n")
                    self._stream.flush()
