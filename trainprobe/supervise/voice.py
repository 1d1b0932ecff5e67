"""What is said on stderr while the job runs: by a thread, since a reader that has stopped reading
must not stop the signals.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading

from trainprobe.redact import Redactor, clean

LAST_WORDS_S = 5.0
MOST_WAITING = 100


class Voice:
    """Says sentences and reports in their order; drops them where nobody reads."""

    def __init__(self, redactor: Redactor, stream: int = 2) -> None:
        self._redactor, self._stream = redactor, stream
        self._texts: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None

    def say(self, sentence: str) -> None:
        """Say one sentence, without secrets and escape sequences."""
        self._put(f"trainprobe: {clean(self._redactor.text(sentence)[0])}\n")

    def show(self, text: str) -> None:
        """Show a report, which has been cleaned already."""
        self._put(text if text.endswith("\n") else f"{text}\n")

    def close(self) -> None:
        """Wait until all is said, but not for ever."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._texts.put_nowait(None)
                self._thread.join(LAST_WORDS_S)

    def _put(self, text: str) -> None:
        with contextlib.suppress(queue.Full):
            self._texts.put_nowait(text)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._speak, name="trainprobe-voice", daemon=True
            )
            self._thread.start()

    def _speak(self) -> None:
        while (text := self._texts.get()) is not None:
            left = text.encode("utf-8", "replace")
            with contextlib.suppress(OSError):  # nobody is there to read it
                while left:
                    left = left[os.write(self._stream, left) :]
