"""A start of a process by spawn: the parent writes its pickles into a pipe that the child reads."""

from __future__ import annotations

from trainprobe.causes.scene import Scene

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


def in_notebook(scene: Scene) -> bool:
    """Was it started from a notebook, whose cells a new process cannot import?"""
    return scene.origin is not None and any(
        part in f"{frame.file} {frame.name}" for frame in scene.origin.frames for part in _NOTEBOOK
    )
