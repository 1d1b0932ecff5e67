"""How a child tells its probe what it does: JSON lines, appended to a file that is opened for each, since the user's code may close every descriptor."""

from __future__ import annotations

import contextlib
import json
import os
import time
import traceback
from typing import Any, Dict, Iterator, List

OURS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_state: Dict[str, Any] = {"path": "", "pid": 0, "phase": ""}


def begin(path: str) -> None:
    _state.update(path=path, pid=os.getpid())


def tell(what: str, **fields: Any) -> None:
    """Append one line. A process that was forked from the child says nothing in its name."""
    if os.getpid() != _state["pid"]:
        return
    line = json.dumps({"what": what, "at": time.time(), "phase": _state["phase"], **fields}, default=repr).encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        file = os.open(_state["path"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line + b"\n")
        finally:
            os.close(file)


def of_a_fork(what: str) -> None:
    """What a process that the user's code forked, and that came back into ours, says before it ends."""
    _state["pid"] = os.getpid()
    tell(what)


@contextlib.contextmanager
def phase(name: str, **fields: Any) -> Iterator[None]:
    """Name a step before it is taken; what is raised in it bears the name."""
    _state["phase"] = name
    tell("phase", **fields)
    yield
    _state["phase"] = ""


def failed(error: BaseException, **fields: Any) -> None:
    """Tell an exception with its frames, outermost first, our own left out."""
    frames: List[Dict[str, Any]] = [
        {"file": entry.filename, "line": entry.lineno, "function": entry.name, "text": (entry.line or "")[:200]}
        for entry in traceback.extract_tb(error.__traceback__)[-80:]
        if not os.path.realpath(entry.filename).startswith(OURS + os.sep)
    ]
    tell("raised", type=type(error).__name__, message=str(error)[:6000], frames=frames[-60:], **fields)
