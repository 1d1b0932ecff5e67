"""Ctrl-C and SIGTERM: the first ends the gathering in order, the second ends the tool."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from typing_extensions import Self


# a terminal or a scheduler signals a whole group, and who is over us passes it on: that is one
# signal
ONE_S = 0.3


class Interrupted(Exception):  # noqa: N818 - no error: the user asked for it
    """The user stopped the gathering. Everything is stopped and what was learnt is in the case."""


class Interruption:
    """While it is entered, `asked` turns true at the first signal. The old handlers come back at
    the end.

    The second signal leaves without another word: whoever we started ends with us, by the keeper's
    pipe or by the death of its parent, and a process that was being looked at goes on when its
    tracer dies.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.asked, self._at = False, 0.0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if (
            threading.current_thread() is threading.main_thread()
        ):  # Python lets no other thread set handlers
            for number in self.SIGNALS:
                if (
                    signal.getsignal(number) is not signal.SIG_IGN
                ):  # under nohup the hang-up stays ignored
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
            outer = getattr(handler, "__self__", None)
            if self.asked and isinstance(
                outer, Interruption
            ):  # whoever looks only there hears of it too
                outer.hear_of(self._at)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked and time.monotonic() - self._at > ONE_S:
            os._exit(130)
        self.hear_of(time.monotonic() if not self.asked else self._at)

    def hear_of(self, at: float) -> None:
        """A signal came at `at` (of time.monotonic())."""
        self.asked, self._at = True, at
