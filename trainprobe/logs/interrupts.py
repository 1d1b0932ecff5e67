"""Ctrl-C while logs are read: the first one asks for the end of the reading, so that what was read is judged; a second one is an interrupt."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def first_interrupt_asks() -> Iterator[Callable[[], bool]]:
    """Give a question: was Ctrl-C pressed? Where signals cannot be had, in a thread or under another handler, Ctrl-C does what it did before."""
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield asked.is_set
        return

    def heard(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    signal.signal(signal.SIGINT, heard)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
