"""What makes a later fork unsafe: threads and their starters, held locks, OpenMP, CUDA."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, Tuple

RUNTIMES = re.compile(
    r"/(lib(?:g|i)?omp\d?|libopenblas|libscipy_openblas|libmkl_\w+|libtbb"
    r"|libblis)[^/\s]*\.so[^/\s]*$"
)
FAMILIES = {
    "libgomp": "GNU OpenMP",
    "libiomp5": "Intel OpenMP",
    "libomp": "LLVM OpenMP",
    "libomp5": "LLVM OpenMP",
}
MOST_LOCKS = 2000


class Starts:
    """Record who starts Python threads: native id to name, file and line outside the library."""

    def __init__(self) -> None:
        self.by_id: Dict[int, Dict[str, str]] = {}
        start = threading.Thread.start

        def noted(thread: threading.Thread) -> None:
            start(thread)
            self.by_id[thread.native_id or 0] = {
                "name": thread.name,
                "where": where_of(sys._getframe(1)),  # noqa: SLF001 - inspect.stack reads sources
            }

        threading.Thread.start = noted  # type: ignore[method-assign, assignment]


def where_of(frame: Any) -> str:
    """`file.py:12 in function` of the innermost frame outside the standard library."""
    library = os.path.dirname(threading.__file__)
    while frame is not None:
        file = frame.f_code.co_filename
        if not (file.startswith((library, "<frozen")) and "site-packages" not in file):
            return f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def tasks() -> Dict[int, str]:
    """The native threads of this process other than the main one, with the kernel's names."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        with (
            contextlib.suppress(OSError),
            open(f"/proc/self/task/{task}/comm", encoding="utf-8", errors="replace") as file,
        ):
            found[int(task)] = file.read().strip()
    found.pop(os.getpid(), None)
    return found


def runtimes() -> List[str]:
    """The libraries of threads that are loaded: OpenMP, OpenBLAS, MKL, TBB."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        found = {
            match.group(0)[1:]
            for line in file
            if (match := RUNTIMES.search(line.rstrip())) is not None
        }
    return sorted(found)


def families(loaded: List[str]) -> List[str]:
    """The OpenMP runtimes among them, each kind once."""
    return sorted(
        {
            name
            for file in loaded
            for prefix, name in FAMILIES.items()
            if re.match(rf"{prefix}[.-]", file)
        }
    )


def cuda_touched() -> str:
    """Who has CUDA open here: `torch.cuda`, an open /dev/nvidia file, or nobody ("")."""
    torch = sys.modules.get("torch")
    with contextlib.suppress(Exception):  # half imported
        if torch is not None and torch.cuda.is_initialized():
            return "torch.cuda"
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            link = os.readlink(f"/proc/self/fd/{fd}")
            if re.match(r"/dev/nvidia\d", link):
                return link
    return ""


def held_now(lock: Any) -> bool:
    """Whether another thread holds it at this moment."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def locks(roots: Dict[str, Any]) -> Dict[str, Any]:
    """The locks at the top of modules, in handlers of logging, and in `roots`, by readable name."""
    found: Dict[str, Any] = {}
    for number, handler in enumerate(_handlers()):
        if getattr(handler, "lock", None) is not None:
            found[f"the lock of logging's {type(handler).__name__} {number}"] = handler.lock
    for name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", {})
        if name.partition(".")[0] not in STANDARD and not str(names.get("__file__")).startswith(
            OURS
        ):
            for key, value in list(names.items()):
                _collect(f"{name}.{key}", value, found, 1)
    for name, value in roots.items():
        _collect(name, value, found, 2)
    return dict(list(found.items())[:MOST_LOCKS])


STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) - {"__main__"}
OURS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LOCKS = (type(threading.Lock()), type(threading.RLock()))


def _collect(name: str, value: Any, found: Dict[str, Any], depth: int) -> None:
    """Add the locks of one value, by its true type: lazy proxies would import or warn."""
    kind = type(value)
    if issubclass(kind, LOCKS):
        if not any(known is value for known in found.values()):
            found[name] = value
    elif issubclass(kind, threading.Condition):
        _collect(name, value._lock, found, 0)  # noqa: SLF001 - there is no public way to its lock
    elif issubclass(kind, threading.Semaphore):
        _collect(name, value._cond, found, 0)  # noqa: SLF001
    elif issubclass(kind, queue.Queue):
        _collect(f"{name}.mutex", value.mutex, found, 0)
    elif (
        depth > 0
        and str(kind.__module__).partition(".")[0] not in STANDARD
        and not issubclass(kind, type)
    ):
        with contextlib.suppress(Exception):  # some types have no plain __dict__
            for key, inner in list(object.__getattribute__(value, "__dict__").items()):
                _collect(f"{name}.{key}", inner, found, depth - 1)


def _handlers() -> Iterator[logging.Handler]:
    noticed = set()
    for logger in [logging.getLogger(), *logging.root.manager.loggerDict.values()]:
        for handler in getattr(logger, "handlers", ()):
            if id(handler) not in noticed:
                noticed.add(id(handler))
                yield handler


def shared_locks(found: Dict[str, Any], look_s: float, patience_s: float) -> List[Tuple[str, Any]]:
    """Those that another thread held within `look_s` and that this thread can still wait for."""
    noticed: Dict[str, Any] = {}
    until = time.monotonic() + look_s
    while time.monotonic() < until and len(noticed) < 8:
        for name, lock in found.items():
            if name not in noticed and held_now(lock):
                noticed[name] = lock
        time.sleep(0.01)
    shared = []
    for name, lock in noticed.items():
        if lock.acquire(timeout=patience_s):
            lock.release()
            shared.append((name, lock))
    return shared


def others_at() -> List[str]:
    """Where the other Python threads stand: `name at file.py:12 in function`."""
    frames, me = (
        sys._current_frames(),  # noqa: SLF001 - the documented way to see other threads
        threading.get_ident(),
    )
    return [
        f"{item.name} at {where_of(frames[item.ident])}"
        for item in threading.enumerate()
        if item.ident != me and item.ident in frames
    ]
