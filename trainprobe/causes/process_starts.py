"""A start of a process by spawn: the parent writes its pickles into a pipe that the child reads."""

from __future__ import annotations

import re

from trainprobe.causes.scene import Scene
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

_STARTS = re.compile(r"\.start\(\)|_Popen\(self\)|_MultiProcessingDataLoaderIter\(")
_NOTEBOOK = ("<ipython-input", "ipykernel", "<cell line", "Cell In[")


def child_died(scene: Scene) -> bool:
    """Did the pipe to a new process break while its object was written?"""
    origin = scene.origin
    if origin is None or origin.type not in {"BrokenPipeError", "EOFError"} or not origin.frames:
        return False
    last = origin.frames[-1]
    return last.name == "dump" and last.file.replace("\\", "/").endswith(
        "multiprocessing/reduction.py"
    )


def started_by_import(scene: Scene) -> Frame | None:
    """The script's own line from which a new process started processes while spawn imported the
    script there; None where the frames do not show it.
    """
    frames = scene.origin.frames if scene.origin is not None else ()
    at = next((n for n, frame in enumerate(frames) if frame.name == "_fixup_main_from_path"), None)
    if at is None:
        return None
    script = next((frame for frame in frames[at:] if is_user(frame)), None)
    starts = any(
        _STARTS.search(frame.text) or frame.name in ("_check_not_importing_main", "Popen")
        for frame in frames[at:]
    )
    return script if starts and script is not None and script.name == "<module>" else None


def in_notebook(scene: Scene) -> bool:
    """Was it started from a notebook, whose cells a new process cannot import?"""
    return scene.origin is not None and any(
        part in f"{frame.file} {frame.name}" for frame in scene.origin.frames for part in _NOTEBOOK
    )
