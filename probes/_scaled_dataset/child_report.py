"""The child's reports: JSON lines. Each opens the file, as user code may close descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, Dict, Iterator

from _shared import child_program

_state: Dict[str, Any] = {"path": "", "pid": 0, "phase": ""}


def begin(path: str) -> None:
    _state.update(path=path, pid=os.getpid())


def tell(what: str, **fields: Any) -> None:
    """Append one line. A process that was forked from the child does not report in its name."""
    if os.getpid() != _state["pid"]:
        return
    line = json.dumps(
        {"what": what, "at": time.time(), "phase": _state["phase"], **fields}, default=repr
    ).encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        file = os.open(_state["path"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line + b"\n")
        finally:
            os.close(file)


def of_a_fork(what: str) -> None:
    """Report that the user's code forked and returned into ours, and end that process."""
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
    tell("raised", **{**child_program.error_fields(error), **fields})
