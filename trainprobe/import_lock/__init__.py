"""One process at a time: `with trainprobe.import_lock(): import heavy`. Standard library only,
Python 3.9.

Ranks that import or build at the same time need the memory for all of them at once. Under this
lock they do it one after the other. It is an flock on a file of this user on this host; the kernel
releases it when its holder ends, however it ends. The file names its holder.

    with trainprobe.import_lock():
        import heavy

    @trainprobe.import_lock(timeout_s=120, on_timeout="go-on")
    def load() -> object: ...

The lock keeps processes apart, not threads: a process that holds it may enter it again at once, in
any thread, since threads may already wait for each other's imports. A forked child neither holds
nor releases its parent's lock. A process whose ancestor holds the lock does not wait for it: that
ancestor may be waiting for the process. Lines on stderr say what happens (docs/import-lock.md has
their form); `quiet=True` or TRAINPROBE_QUIET=1 switches them off.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from trainprobe.import_lock import held_memory, lock_file
from trainprobe.import_lock.acquisition import Asking

TYPE_CHECKING = False  # importing typing would cost more than all of this folder
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["ImportLock", "import_lock"]

SAYS_AGAIN_S = 30.0  # so often a waiter says that it still waits, and for whom
_FIRST_S = 0.2  # then whoever holds it has signed


def import_lock(
    path: str | None = None,
    *,
    timeout_s: float | None = 600.0,
    on_timeout: str = "raise",
    slots: int = 1,
    quiet: bool | None = None,
) -> ImportLock:
    """Return a lock to use in a `with` or as a decorator.

    `path` is the lock file, by default one for this user on this host in a local folder.
    `timeout_s` is how long to wait in seconds (None: for ever); then `on_timeout` is `raise`
    (TimeoutError that names the holder) or `go-on` (a RuntimeWarning, and on without the lock).
    `slots` lets so many processes in at once; all of them must give the same number. Raises
    ValueError for other values, and on entry OSError where the file cannot be locked or belongs to
    somebody else.
    """
    return ImportLock(path, timeout_s=timeout_s, on_timeout=on_timeout, slots=slots, quiet=quiet)


class ImportLock:
    """See `import_lock`. One object may be entered many times, also by several threads."""

    def __init__(
        self,
        path: str | None = None,
        *,
        timeout_s: float | None = 600.0,
        on_timeout: str = "raise",
        slots: int = 1,
        quiet: bool | None = None,
    ) -> None:
        if on_timeout not in ("raise", "go-on"):
            raise ValueError(f"on_timeout is raise or go-on, not {on_timeout!r}.")
        if slots < 1 or (timeout_s is not None and timeout_s < 0):
            raise ValueError("slots is at least 1, and timeout_s at least 0.")
        self.path = os.path.abspath(path) if path else ""
        self.timeout_s, self.on_timeout, self.slots = timeout_s, on_timeout, slots
        if quiet is None:
            quiet = os.environ.get("TRAINPROBE_QUIET", "") not in ("", "0")
        self.quiet = quiet
        self._entered = threading.local()  # what this thread entered, innermost last

    def __enter__(self) -> ImportLock:  # noqa: PYI034 - Self is newer than Python 3.9
        held = self._acquire()
        self._entered.stack = [*getattr(self._entered, "stack", ()), (held, os.getpid())]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        held, pid = self._entered.stack.pop()
        if held is None or pid != os.getpid():
            return  # entered without the lock, or in the process that this one was forked from
        with _process.mutex:
            held.entered -= 1
            if held.entered:
                return
            _process.held.pop(self.path, None)
        if not self.quiet:
            when = "after import" if kind is None else f"after failed import ({kind.__name__})"
            _write(held_memory.line(_me(), held.rss_bytes, when))
        lock_file.release(held.file)
        self._say(f"released import lock {self.path} after {time.monotonic() - held.since:.1f} s")

    def __call__(self, function: Function) -> Function:
        """Return the function so that it runs under the lock."""
        import functools

        @functools.wraps(function)
        def under_lock(*args: Any, **named: Any) -> Any:
            with self:
                return function(*args, **named)

        return under_lock  # type: ignore[return-value]

    def _acquire(self) -> _Held | None:
        """Return what is held then; None where it goes on without the lock."""
        self.path = self.path or lock_file.default_path()
        began, spoke, asked_about = time.monotonic(), 0.0, ""
        asking = Asking([self.path, *(f"{self.path}.{slot}" for slot in range(1, self.slots))])
        _process.asking.append(asking)
        try:
            while True:
                with _process.mutex:
                    held = _process.held.get(self.path)
                    if held is not None:  # by another thread, or further out
                        held.entered += 1
                        return held
                    file = asking.taken()
                    if file is not None:
                        held = _process.held[self.path] = _Held(file)
                now = time.monotonic()
                if held is not None:
                    for other in list(_process.asking):
                        other.news.set()  # threads of this process need not wait any more
                    self._say(f"got import lock {self.path} after {now - began:.1f} s")
                    return held
                holder = asking.holder()
                if holder.get("pid", "") != asked_about and lock_file.is_ancestor(holder):
                    self._say(
                        f"goes on without import lock {self.path} after {now - began:.1f} s"
                        f" ({lock_file.held_by(holder)}, its ancestor)"
                    )
                    return None
                asked_about = holder.get("pid", "")
                if self.timeout_s is not None and now - began >= self.timeout_s:
                    self._give_up(now - began, holder)
                    return None
                unsigned = not holder and now - began < _FIRST_S
                if not unsigned and (not spoke or now - spoke >= SAYS_AGAIN_S):
                    self._say(f"waits for import lock {self.path} ({lock_file.held_by(holder)})")
                    spoke = now
                pause = _FIRST_S / 4 if now - began < _FIRST_S else spoke + SAYS_AGAIN_S - now
                if self.timeout_s is not None:
                    pause = min(pause, began + self.timeout_s - now)
                asking.wait(max(0.001, pause))
        finally:
            _process.asking.remove(asking)
            asking.leave()

    def _give_up(self, waited_s: float, holder: dict[str, str]) -> None:
        """Raise, or warn that it goes on without the lock."""
        held, pid = lock_file.held_by(holder), holder.get("pid", "")
        program = f" ({holder['argv0']})" if holder.get("argv0") else ""
        who = f"{held}{program}, on {holder.get('host') or lock_file.host()}"
        if self.on_timeout == "raise":
            self._say(f"gave up on import lock {self.path} after {waited_s:.1f} s ({held})")
            look = f" See what it does: trainprobe attach {pid}." if pid else ""
            raise TimeoutError(
                f"The import lock {self.path} was not to be had in {waited_s:.1f} s: it is"
                f" {who}.{look}"
            )
        self._say(f"goes on without import lock {self.path} after {waited_s:.1f} s ({held})")
        import warnings

        warnings.warn(
            f"Going on without the import lock {self.path} after {waited_s:.1f} s: it is {who}.",
            RuntimeWarning,
            stacklevel=4,
        )

    def _say(self, text: str) -> None:
        if not self.quiet:
            _write(f"LOCK: {_me()} {text}")


class _Held:
    """A lock that this process holds: the open file, how often it was entered, since when
    (monotonic seconds).
    """

    def __init__(self, file: int) -> None:
        self.file, self.entered, self.since = file, 1, time.monotonic()
        self.rss_bytes = held_memory.resident_bytes()[0]


class _Process:
    """What this process holds, by path, and what its threads ask for."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.held: dict[str, _Held] = {}
        self.asking: list[Asking] = []

    def forked(self) -> None:
        """Begin anew in a child. The parent's files are closed, so that its lock does not
        outlive it here, and its lock stays as it is.
        """
        lock_file.close_all()
        self.__init__()  # type: ignore[misc]


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


def _me() -> str:
    rank = lock_file.rank()
    return f"rank {rank} pid {os.getpid()}" if rank else f"pid {os.getpid()}"


def _write(line: str) -> None:
    """One write for each line, so that ranks do not cut into each other's. Whatever is wrong
    with stderr, the import goes on.
    """
    try:
        if line:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
