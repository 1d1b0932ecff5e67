"""Reads ahead in a thread, so a file system that hangs costs a deadline, not the whole call."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator

from trainprobe.logs.opening import STDIN, NoLogError, Opened, open_input, pieces

SILENT_S = 60.0
TICK_S = 0.5
_END = b""


class ReadAhead:
    """The pieces of one file from `opening.pieces`, with deadlines. `opened` is set once the file
    is open. `stopped` is asked between pieces whether the user has interrupted.
    """

    def __init__(self, path: str, stopped: Callable[[], bool] = bool) -> None:
        self.path = path
        self._stopped = stopped
        self.opened: Opened | None = None
        self._error: Exception | None = None
        self._pieces: queue.Queue[bytes] = queue.Queue(maxsize=2)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._work, name="trainprobe-read", daemon=True)

    def read(self, ends: float) -> Generator[bytes, None, None]:
        """Yield the pieces until `ends` (monotonic). Raises OSError and NoLogError like opening,
        and TimeoutError if the file never opened.

        A file that yields nothing for a minute is given up; stdin may stay silent until `ends`.
        """
        self._thread.start()
        try:
            yield from self._until(ends)
        finally:
            self._left.set()

    def _until(self, ends: float) -> Iterator[bytes]:
        last = time.monotonic()
        while True:
            now = time.monotonic()
            silent = self.path != STDIN and now - last > SILENT_S
            if self._stopped() or now > ends or silent:
                why = f"nothing could be read for {SILENT_S:g} s" if silent else "no time was left"
                self._give_up("it was interrupted" if self._stopped() else why)
                return
            try:
                piece = self._pieces.get(timeout=min(TICK_S, max(0.01, ends - now)))
            except queue.Empty:
                continue
            if piece == _END:
                if self._error is not None:
                    raise self._error
                return
            last = time.monotonic()
            yield piece

    def _give_up(self, why: str) -> None:
        if self.opened is None:
            raise TimeoutError(0, why)
        self.opened.flaw(
            "partial" if self.opened.read_bytes else "timed_out",
            f"{why}; what comes before was read" if self.opened.read_bytes else why,
        )

    def _work(self) -> None:
        opened: Opened | None = None
        try:
            opened = self.opened = open_input(self.path)
            for piece in pieces(opened):
                if piece and not self._put(piece):
                    return
        except (OSError, NoLogError) as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - a fault in one file must not affect the others
            self._error = NoLogError(f"cannot be read: {type(error).__name__}: {error}")
        finally:
            if opened is not None:
                os.close(opened.fd)
            self._put(_END)

    def _put(self, piece: bytes) -> bool:
        while not self._left.is_set():
            try:
                self._pieces.put(piece, timeout=TICK_S)
            except queue.Full:
                continue
            return True
        return False
