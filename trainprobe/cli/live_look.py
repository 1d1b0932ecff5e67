"""The progress of a look at a live job, on stderr: nothing in the first second, then sentences."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO

from trainprobe.model.progress import Progress, Silence

PATIENCE_S = 1.0


@contextlib.contextmanager
def looking(*, quiet: bool, patience_s: float = PATIENCE_S) -> Iterator[Progress]:
    """Yield a listener that prints after `patience_s`, and never with `quiet`."""
    if quiet:
        yield Silence()
        return
    notes = LateNotes(sys.stderr, patience_s)
    try:
        yield notes
    finally:
        notes.close()


class LateNotes(Silence):
    """Holds the newest sentence back for the first second, so that a quick look prints nothing,
    and prints at once from then on.
    """

    def __init__(self, stream: IO[str], patience_s: float = PATIENCE_S) -> None:
        self._stream, self._newest = stream, ""
        self._lock = threading.Lock()
        self._speaks_at = time.monotonic() + patience_s
        self._timer = threading.Timer(patience_s, self._speak)
        self._timer.daemon = True
        self._timer.start()

    def note(self, says: str) -> None:
        """Print the sentence, or keep it for the end of the first second."""
        with self._lock:
            self._newest = says
        if time.monotonic() >= self._speaks_at:
            self._speak()

    def close(self) -> None:
        """Say no more."""
        self._timer.cancel()
        with self._lock:
            self._newest = ""

    def _speak(self) -> None:
        from trainprobe.report.phrases import clean

        with self._lock:
            says, self._newest = self._newest, ""
            if says:
                # A reader that went away must not cost the look.
                with contextlib.suppress(OSError, ValueError):
                    self._stream.write(f"{clean(says)}\n")
                    self._stream.flush()
