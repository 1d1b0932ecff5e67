"""Whose code a frame is: the user's, a library's, torch's, Python's own, or ours."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from trainprobe.stacks.frames import Frame

# What inductor and triton write and run (torch 2.13: TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR) is
# nobody's own code. A framework may be installed in place, from its sources.
_LIBRARY = re.compile(
    r"/src/(?:transformers|accelerate|lightning(?:_fabric)?|pytorch_lightning|peft|datasets)/"
    r"|(?:^|/)deepspeed/(?:runtime|comm|ops|accelerator|launcher)/"
    r"|/(?:site|dist)-packages/|/torchinductor_[^/]+/|/\.triton/cache/"
    r"|/\w\w/c\w\w[a-z2-7]{40,}\.py$"
)
# With the drives and folders of Windows.
_STANDARD = re.compile(
    r"/lib(?:64)?/python3(?:\.\d+)?t?/(?!(?:site|dist)-packages/)|\.zip/"
    r"|^[A-Za-z]:/(?:.{0,400}/)?(?:[Pp]ython[\d.-]*|\w*(?:conda|forge)\d?|envs/[^/]+)/[Ll]ib/"
    r"(?!site-packages/)"
)
# `.../` stands where somebody has shortened a path. A folder of any name may hold torch: built from
# source, or installed with `--target`.
_TORCH = re.compile(
    r"(?:^(?:(?:\.\.\.|\u2026)/)?|/(?:site|dist)-packages/|/pytorch/)torch(?:gen|data)?/"
    r"|/torch/(?:_tensor\.py$|_(?:dynamo|inductor|functorch|compile|jit_internal|ops)\b|autograd/|fx/"
    r"|nn/(?:modules|parallel|functional\.py)|optim/\w+\.py$|utils/(?:data|checkpoint\.py|_contextlib)"
    r"|multiprocessing/(?:queue|spawn|reductions|pool)\b|serialization\.py$"
    r"|distributed/(?:c10d_logger|distributed_c10d|rendezvous|run|launch\w*|elastic|fsdp|checkpoint"
    r"|_\w+|algorithms|pipelining|tensor|nn|optim|rpc)(?:/|\.py$))"
)
_NATIVE = re.compile(
    r"\.so(?:\.[\d.]+)?$|(?:^|/)python\d[\d.]*t?$|\.(?:c|cc|cpp|cu|h|hpp|pyx|rs)$|^\[\w*\]$|^$"
)
# Our own watcher inside the user's processes: its frames lie between the user's call and torch.
_OURS = re.compile(r"/_witness/")


def is_native(frame: Frame) -> bool:
    """A frame of a shared library, as native stacks show them."""
    return _is_native(frame.file)


def is_standard(frame: Frame) -> bool:
    """Python's own library, its frozen parts included."""
    return _is_standard(frame.file)


def is_torch(frame: Frame) -> bool:
    return _is_torch(frame.file)


def is_ours(frame: Frame) -> bool:
    return bool(_OURS.search(frame.file))


def is_library(frame: Frame) -> bool:
    return _is_library(frame.file)


def is_user(frame: Frame) -> bool:
    """The user's own file: neither installed nor Python's, and not typed in."""
    return _is_user(frame.file)


# The ranks of a job stand in the same few hundred files.
_of_files = functools.lru_cache(maxsize=8192)


@_of_files
def _is_native(file: str) -> bool:
    python = file.endswith((".py", ">")) or file.startswith("<")
    return not python and bool(_NATIVE.search(file))


@_of_files
def _is_standard(file: str) -> bool:
    return file.startswith("<frozen") or bool(_STANDARD.search(file))


@_of_files
def _is_torch(file: str) -> bool:
    return bool(_TORCH.search(file)) and not _is_native(file)


@_of_files
def _is_library(file: str) -> bool:
    return bool(_LIBRARY.search(file)) or _is_torch(file)


@_of_files
def _is_user(file: str) -> bool:
    if not file or file.startswith("<") or _is_native(file):
        return False
    return not (_is_standard(file) or _is_library(file) or _OURS.search(file))


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's code; where there is none, of a library other than
    torch; else None. Frames outermost first.
    """
    for test in (is_user, _other_library):
        found = next((frame for frame in reversed(frames) if test(frame)), None)
        if found is not None:
            return found
    return None


def outside_torch(frames: Sequence[Frame]) -> bool:
    """Does it stand in the user's own code, or in what this calls other than torch? A module that
    torch calls computes, whether its operations show as frames or not.
    """
    last = max((place for place, frame in enumerate(frames) if is_user(frame)), default=None)
    if last is None or any(map(is_torch, frames[last + 1 :])):
        return False
    return not any(frame.file.endswith(_CALLS_MODULES) for frame in frames[:last])


_CALLS_MODULES = "torch/nn/modules/module.py"


def _other_library(frame: Frame) -> bool:
    excluded = is_torch(frame) or is_native(frame) or is_ours(frame)
    return bool(_LIBRARY.search(frame.file)) and not excluded


def module_importing(frames: Sequence[Frame]) -> str:
    """The dotted name of the module whose import is under way on this stack, or "".

    Module code runs in a frame called `<module>`. The outermost one is the program itself, and one
    below runpy is a program too; no program imports itself, but tracebacks of several ranks that
    were written into each other look like it. Of nested imports the outermost installed library
    counts, since that is what a user can fix or pin; among the user's own modules the innermost.
    """
    own = ""
    # The interpreter's own native frames call the program.
    python = [frame for frame in frames if not is_native(frame)]
    for before, frame in zip(python, python[1:]):
        program = before.base in ("runpy.py", "<frozen runpy>", "spawn.py")
        other = frame.file and frame.file != python[0].file and not frame.file.startswith("<")
        if program or frame.name != "<module>" or not other:
            continue
        if is_library(frame):
            return module_name(frame.file)
        own = module_name(frame.file)
    return own


def module_name(file: str) -> str:
    """`…/site-packages/numpy/core/__init__.py` → `numpy.core`; for a file of no package its own
    name.
    """
    path = file.replace("\\", "/")
    for pattern in (_LIBRARY, _STANDARD):
        parts = pattern.split(path)
        if len(parts) > 1:
            path = parts[-1]
            break
    else:
        parts = path.rsplit("/", 2)
        path = f"{parts[-2]}/__init__" if path.endswith("/__init__.py") else parts[-1]
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
