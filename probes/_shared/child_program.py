"""What runs inside a child that reports through files FOLDER/KEY.*. It imports little:
import_memory measures the process before and after an import.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import time
from typing import Any, Dict, Iterable, List

PROBES = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PARENT = os.getppid()


def prepare(folder: str, key: str) -> None:
    """Volunteer for the OOM killer; write all stacks to FOLDER/KEY.stack on SIGABRT or a crash."""
    with contextlib.suppress(OSError):
        write("/proc/self/oom_score_adj", "500")
    stacks = open(f"{folder}/{key}.stack", "w", encoding="utf-8")  # noqa: SIM115 - stays open
    faulthandler.enable(stacks, all_threads=True)


def write(path: str, text: str = "") -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def answer(folder: str, key: str, fields: Dict[str, Any]) -> None:
    """Write FOLDER/KEY.json in one step, so that nobody reads half of it."""
    write(f"{folder}/{key}.tmp", json.dumps(fields, default=repr))
    os.rename(f"{folder}/{key}.tmp", f"{folder}/{key}.json")


def wait_for(*paths: str, sleep: Any = time.sleep) -> None:
    """Wait until one of the files exists, or the probe is gone."""
    while os.getppid() == PARENT and not any(map(os.path.exists, paths)):
        sleep(0.005)


def is_ours(file: str) -> bool:
    """Whether a frame is a probe's own, or of Python's import machinery."""
    return (
        file.startswith((PROBES + os.sep, "<frozen"))
        or os.path.realpath(file).startswith(PROBES + os.sep)
        or file.endswith("/importlib/__init__.py")
    )


def error_fields(error: BaseException, most: int = 60) -> Dict[str, Any]:
    """An exception as `type`, `message` and `frames`, outermost first, without our own."""
    import traceback  # it must not count as part of the process before an import is measured

    entries = [
        item for item in traceback.extract_tb(error.__traceback__) if not is_ours(item.filename)
    ]
    frames = frames_of(entries[-most:])
    return {"type": type(error).__name__, "message": message_of(error)[:4000], "frames": frames}


def frames_of(entries: Iterable[Any]) -> List[Dict[str, Any]]:
    """Frames of `traceback.extract_tb` as rows of JSON."""
    return [
        {"file": it.filename, "line": it.lineno, "function": it.name, "text": (it.line or "")[:200]}
        for it in entries
    ]


def summary_of(error: BaseException, most: int = 200) -> str:
    """`ValueError: the message`, its message cut to `most` characters."""
    return f"{type(error).__name__}: {message_of(error).strip()[:most]}"


def message_of(error: BaseException) -> str:
    """An exception's message. The user's class may fail even there."""
    try:
        return str(error)
    except Exception as other:  # whatever the user's __str__ raises
        return f"(its message cannot be read: {type(other).__name__})"
