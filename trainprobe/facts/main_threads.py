"""Where threads stand: all of them as seen, and for each process its main thread, classified."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class Thread(Fact):
    """One thread in one look, frames outermost first. `main` is true for the process's main thread."""

    pid: int = 0
    role: str = "rank"
    look: int = 1
    name: str = ""
    os_thread_id: int | None = None
    active: bool = False
    owns_gil: bool = False
    main: bool = False
    frames: tuple[Frame, ...] = ()
    leaf: str = ""
    native: bool = False
    at: float | None = None


@dataclass(frozen=True)
class MainThread(Fact):
    """A process's main thread as last seen.

    `frames` are outermost first, wrapper frames kept. `leaf` is the class of the place where it stands (stacks.classify),
    `op` the operation (all_reduce, flock, FileBaton …). `where` is the innermost user frame in words, `user_*` the same in parts.
    `moved`: did it go on between looks; None when there was one look only. `source` is py-spy or faulthandler.
    `importing` is the module whose import is under way on this stack, `lock_path` the file that it wants to lock, where known.
    `in_backward` is true below autograd's backward (DDP reduces there), `in_atexit` while the interpreter shuts down.
    """

    pid: int = 0
    role: str = "rank"
    frames: tuple[Frame, ...] = ()
    leaf: str = ""
    op: str = ""
    where: str = ""
    user_file: str = ""
    user_line: int = 0
    user_function: str = ""
    moved: bool | None = None
    looks: int = 1
    owns_gil: bool = False
    source: str = "py-spy"
    importing: str = ""
    in_atexit: bool = False
    in_backward: bool = False
    lock_path: str = ""
