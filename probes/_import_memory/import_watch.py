"""What an import does besides importing: which module starts threads or opens a GPU, which locks it
waits for, which programs it starts.

Functions of the standard library are wrapped in the child that imports, and loaders of modules, so
that each sign has the innermost module that was being run. What a C extension does by itself (a
flock in C) is seen by its result only.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib._bootstrap_external as loaders
import os
import sys
import time
from types import FrameType
from typing import IO, Any, Callable, Dict, Optional, Tuple

sleep = time.sleep  # the real one
_flock = fcntl.flock  # the real one too
_LOCK_NAMES = ("lock_file_path", "lock_filename", "lock_file", "path")
_CAP = 40


def take(file: IO[str]) -> bool:
    """Lock a file of our own, if it is free."""
    try:
        _flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holds_a_gpu() -> bool:
    """Is a device file of an accelerator open?"""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}").startswith(
                ("/dev/nvidia", "/dev/kfd", "/dev/dri/renderD")
            ):
                return True
    return False


class Watch:
    """`lock_file` is where the path of the lock stands that is waited for, as long as it is."""

    def __init__(self, lock_file: str) -> None:
        self.lock_file = lock_file
        self.known: Tuple[int, int] = (0, 0)  # threads and descriptors when the last module ended
        self.threads: Dict[str, int] = {}
        self.cuda = ""
        self.waits: Dict[str, float] = {}  # seconds by lock file
        self.programs: Dict[str, int] = {}  # how often each was started
        self.forks = 0

    def begin(self) -> None:
        self.known = self._counts()
        # SourceFileLoader and SourcelessFileLoader have theirs from a common class, here found
        # without its name.
        written: Any = next(
            kind for kind in loaders.SourceFileLoader.__mro__ if "exec_module" in vars(kind)
        )
        native: Any = loaders.ExtensionFileLoader
        for loader, name in (
            (written, "exec_module"),
            (native, "create_module"),
            (native, "exec_module"),
        ):
            setattr(loader, name, self._around(getattr(loader, name)))
        for name in ("flock", "lockf"):
            setattr(fcntl, name, self._locking(getattr(fcntl, name)))
        time.sleep = self._sleeping  # type: ignore[assignment]
        sys.addaudithook(self._heard)

    def summary(self) -> Dict[str, Any]:
        paths = sorted(self.waits, key=lambda path: -self.waits[path])[:_CAP]
        return {
            "threads_by": dict(sorted(self.threads.items(), key=lambda item: -item[1])[:_CAP]),
            "cuda_by": self.cuda,
            "lock_wait_s": round(sum(self.waits.values()), 3),
            "lock_paths": paths,
            "programs": dict(sorted(self.programs.items(), key=lambda item: -item[1])[:_CAP]),
            "forks": self.forks,
        }

    def _counts(self) -> Tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    def _around(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def watched(loader: Any, what: Any) -> Any:
            name = str(getattr(what, "__name__", getattr(what, "name", "?")))
            try:
                return plain(loader, what)
            finally:
                self._credit(name)

        return watched

    def _credit(self, name: str) -> None:
        """What is new since the last module ended came from this one."""
        threads, fds = self._counts()
        if threads > self.known[0]:
            self.threads[name] = self.threads.get(name, 0) + threads - self.known[0]
        if fds > self.known[1] and not self.cuda and holds_a_gpu():
            self.cuda = name
        self.known = threads, fds

    def _locking(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def locked(file: Any, operation: int, *more: Any) -> Any:
            if operation & fcntl.LOCK_NB or operation & fcntl.LOCK_UN:
                return plain(file, operation, *more)
            fd = file if isinstance(file, int) else file.fileno()
            try:
                path = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                path = "a file"
            with self._waiting(path):
                return plain(file, operation, *more)

        return locked

    def _sleeping(self, for_s: float) -> None:
        """A sleep between tries is a wait for the lock: FileBaton and filelock poll."""
        frame: Optional[FrameType] = sys._getframe(1)  # noqa: SLF001 - inspect would cost more memory than some imports
        path = ""
        for _ in range(5):
            if frame is None or path:
                break
            if (
                frame.f_code.co_filename.endswith("file_baton.py")
                or f"{os.sep}filelock{os.sep}" in frame.f_code.co_filename
            ):
                mine = frame.f_locals.get("self")
                found = [
                    frame.f_locals.get(name) or getattr(mine, name, None) for name in _LOCK_NAMES
                ]
                path = next((text for text in found if isinstance(text, str)), "a lock file")
            frame = frame.f_back
        if not path:
            return sleep(for_s)
        with self._waiting(path):
            return sleep(for_s)

    @contextlib.contextmanager
    def _waiting(self, path: str) -> Any:
        began = time.monotonic()
        with contextlib.suppress(OSError), open(self.lock_file, "w") as file:
            file.write(path)
        try:
            yield
        finally:
            took_s = time.monotonic() - began
            if took_s > 0.01:  # a lock that is free is no wait
                self.waits[path] = self.waits.get(path, 0.0) + took_s
            with contextlib.suppress(OSError):
                os.unlink(self.lock_file)

    def _heard(self, event: str, args: Tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.system", "os.exec"):
            line = args[1] if event == "subprocess.Popen" and args[1] else args[0]
            program = line[0] if isinstance(line, (list, tuple)) and line else line
            text = os.fsdecode(program) if isinstance(program, (str, bytes, os.PathLike)) else "?"
            name = os.path.basename((text.split() or ["?"])[0])
            self.programs[name] = self.programs.get(name, 0) + 1
        elif event in ("os.fork", "os.forkpty"):
            self.forks += 1
