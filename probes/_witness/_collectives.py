"""A journal of the collectives that this rank calls, in a memory-mapped ring that survives an abort
or a SIGKILL.

`torch.distributed` wraps every public collective in `c10d_logger._exception_logger`. That decorator
is exchanged, once, before
`distributed_c10d` is executed, for one that first writes down operation, sizes, type and call site.
Nothing else is touched. Each slot holds one state byte (1 entered, 2 returned) and a JSON text of
at most SLOT_BYTES - 1 bytes.
"""

from __future__ import annotations

import functools
import json
import linecache
import mmap
import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

SLOT_BYTES = 512
SLOTS = 512
OURS = os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename))
NO_COLLECTIVES = ("init_process_group", "new_group", "split_group", "shrink_group")


class Journal:
    """The ring of one process. `enter` gives the slot that `leave` closes."""

    def __init__(self, path: str) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.ftruncate(handle, SLOTS * SLOT_BYTES)
        self.ring = mmap.mmap(handle, SLOTS * SLOT_BYTES)
        os.close(handle)
        self.pid = os.getpid()
        self.written = 0
        self.numbers: Dict[str, int] = {}
        self.lock = threading.Lock()

    def enter(
        self, op: str, args: Tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType
    ) -> int:
        group = _group_of(args, kwargs)
        tensor = _first_tensor(args, kwargs)
        with self.lock:
            number = self.numbers.get(group, 0)
            self.numbers[group] = number + 1
            slot = self.written % SLOTS
            self.written += 1
        row = {
            "number": number,
            "op": op,
            "group": group,
            "sizes": [] if tensor is None else [int(size) for size in tensor.shape][:8],
            "dtype": "" if tensor is None else str(tensor.dtype).replace("torch.", ""),
            "file": frame.f_code.co_filename[-200:],
            "line": frame.f_lineno,
            "function": frame.f_code.co_name[:60],
            "at": round(time.time(), 4),
        }
        text = json.dumps(row).encode()[: SLOT_BYTES - 1]
        begin = slot * SLOT_BYTES
        self.ring[begin : begin + SLOT_BYTES] = b"\x01" + text.ljust(SLOT_BYTES - 1, b"\0")
        return begin

    def leave(self, begin: int) -> None:
        self.ring[begin] = 2


def _group_of(args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """The name of the process group that was passed, empty for the default one."""
    for value in (kwargs.get("group"), *args):
        name = getattr(value, "group_name", None)
        if isinstance(name, str):
            return name[:60]
    return ""


def _first_tensor(args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    for value in (*args, *kwargs.values()):
        items = value[:1] if isinstance(value, (list, tuple)) else (value,)
        for item in items:
            if hasattr(item, "shape") and hasattr(item, "dtype"):
                return item
    return None


def _caller() -> FrameType:
    """The frame that called the collective: the first one outside torch and outside this file."""
    frame: Optional[FrameType] = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if "/torch/" not in name and not name.startswith((OURS, "<")):
            return frame
        frame = frame.f_back
    return sys._getframe(2)


def _as_part_of(theirs: CodeType, own: CodeType) -> CodeType:
    """Our code object under the name and line of torch's wrapper, so that stacks look the same."""
    call = next(
        line
        for line, text in enumerate(linecache.getlines(own.co_filename), 1)
        if text.lstrip().startswith("answer = wrapped(")
    )
    first = theirs.co_firstlineno
    at = next(
        (
            line
            for line in range(first, first + 12)
            if "func(*args" in linecache.getline(theirs.co_filename, line)
        ),
        first,
    )
    names: Dict[str, Any] = {
        "co_filename": theirs.co_filename,
        "co_name": theirs.co_name,
        "co_firstlineno": max(1, own.co_firstlineno + at - call),
    }
    if hasattr(theirs, "co_qualname"):
        names["co_qualname"] = theirs.co_qualname
    return own.replace(**names)


def journal_calls(c10d_logger: Any, path: str) -> None:
    """Replace the decorator in `c10d_logger`, once, right after that module was executed."""
    original = c10d_logger._exception_logger
    journals: List[Journal] = []
    inside = threading.local()

    def note(op: str, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Optional[int]:
        """Open a slot; a full disk or an odd tensor must never reach the user's program."""
        try:
            if op in NO_COLLECTIVES:
                return None
            if not journals:
                journals.append(Journal(path))
            return (
                journals[0].enter(op, args, kwargs, _caller())
                if journals[0].pid == os.getpid()
                else None
            )
        except Exception:
            return None

    def with_journal(function: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = original(function)
        op = function.__name__

        def journalled(*args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "busy", False):  # a collective that is made of others counts once
                return wrapped(*args, **kwargs)
            inside.busy = True
            try:
                begin = note(op, args, kwargs)
                answer = wrapped(*args, **kwargs)
                if begin is not None:
                    journals[0].leave(begin)
                return answer
            finally:
                inside.busy = False

        journalled.__code__ = _as_part_of(wrapped.__code__, journalled.__code__)
        return functools.wraps(wrapped)(journalled)

    c10d_logger._exception_logger = with_journal
