"""A journal of the collectives that this rank calls, in a memory-mapped ring that survives an abort or a SIGKILL.

`torch.distributed` wraps every public collective in `c10d_logger._exception_logger`. That decorator is exchanged, once, before
`distributed_c10d` is executed, for one that first writes down operation, sizes, type and call site. Nothing else is touched.
Each slot holds one state byte (1 entered, 2 returned) and a JSON text of at most SLOT_BYTES - 1 bytes. 5-10 µs a call.
"""

import functools
import json
import linecache
import mmap
import os
import sys
import threading
import time

SLOT_BYTES = 512
SLOTS = 512
OURS = os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename))


class Journal:
    """The ring of one process. `enter` gives the slot that `leave` closes."""

    def __init__(self, path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.ftruncate(handle, SLOTS * SLOT_BYTES)
        self.ring = mmap.mmap(handle, SLOTS * SLOT_BYTES)
        os.close(handle)
        self.pid = os.getpid()
        self.written = 0
        self.numbers = {}
        self.lock = threading.Lock()

    def enter(self, op, args, kwargs, frame):
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

    def leave(self, begin):
        self.ring[begin] = 2


def _group_of(args, kwargs):
    """The name of the process group that was passed, empty for the default one."""
    for value in (kwargs.get("group"), *args):
        name = getattr(value, "group_name", None)
        if isinstance(name, str):
            return name[:60]
    return ""


def _first_tensor(args, kwargs):
    for value in (*args, *kwargs.values()):
        items = value[:1] if isinstance(value, (list, tuple)) else (value,)
        for item in items:
            if hasattr(item, "shape") and hasattr(item, "dtype"):
                return item
    return None


def _caller():
    """The frame that called the collective: the first one outside torch and outside this file."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_back is not None:
        name = frame.f_code.co_filename
        if "/torch/" not in name and not name.startswith((OURS, "<")):
            return frame
        frame = frame.f_back
    return sys._getframe(2)


def _as_part_of(theirs, ours):
    """Our code object under the name and at the line of torch's wrapper, so that tracebacks and stacks read as they always do."""
    call = next(line for line, text in enumerate(linecache.getlines(ours.co_filename), 1) if text.lstrip().startswith("answer = wrapped("))
    lines = [line for _, _, line in theirs.co_lines() if line] if hasattr(theirs, "co_lines") else [theirs.co_firstlineno + 3]
    at = next((line for line in lines if "func(*args" in linecache.getline(theirs.co_filename, line)), theirs.co_firstlineno)
    names = {"co_filename": theirs.co_filename, "co_name": theirs.co_name, "co_firstlineno": max(1, ours.co_firstlineno + at - call)}
    if hasattr(theirs, "co_qualname"):
        names["co_qualname"] = theirs.co_qualname
    return ours.replace(**names)


def journal_calls(c10d_logger, path):
    """Exchange the decorator in `c10d_logger`. Call it once, right after that module was executed."""
    original = c10d_logger._exception_logger
    state = {"journal": None}
    inside = threading.local()

    def with_journal(function):
        wrapped = original(function)
        op = function.__name__

        def journalled(*args, **kwargs):
            if getattr(inside, "depth", 0):
                return wrapped(*args, **kwargs)
            begin = None
            journal = None
            inside.depth = 1
            try:
                try:
                    if op not in ("init_process_group", "new_group", "split_group", "shrink_group"):
                        if state["journal"] is None:
                            state["journal"] = Journal(path)
                        journal = state["journal"]
                        if journal.pid == os.getpid():
                            begin = journal.enter(op, args, kwargs, _caller())
                except Exception:  # a full disk or an odd tensor must never reach the user's program
                    begin = None
                answer = wrapped(*args, **kwargs)
                if begin is not None:
                    journal.leave(begin)
                return answer
            finally:
                inside.depth = 0

        journalled.__code__ = _as_part_of(wrapped.__code__, journalled.__code__)
        return functools.wraps(wrapped)(journalled)

    c10d_logger._exception_logger = with_journal
