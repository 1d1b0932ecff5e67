"""Where threads stand: all of them as seen, and for each process its main thread, classified."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts.frame_rows import frames_of
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class Thread(Fact):
    """One thread in one look, frames outermost first. `main` is true for the process's main
    thread.
    """

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
    timer_s: float | None = None


@dataclass(frozen=True)
class MainThread(Fact):
    """A process's main thread as last seen.

    `frames` are outermost first, wrapper frames kept. `leaf` is the class of the place where it
    stands (stacks.classify),
    `op` the operation (all_reduce, flock, FileBaton …). `where` is the innermost user frame in
    words, `user_*` the same in parts.
    `moved`: did it go on between looks; None when there was one look only. `source` is py-spy or
    faulthandler.
    `importing` is the module whose import is under way on this stack, `lock_path` the file that it
    wants to lock, where known.
    `timer_s`: the dump was written because a timer of so many seconds ran out, None where something
    else had it written.
    `in_backward` is true below autograd's backward (DDP reduces there), `in_atexit` while the
    interpreter shuts down.
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
    timer_s: float | None = None

    @property
    def at_a_key(self) -> bool:
        """Does it wait in the store for keys that others set: one, or one of every rank?"""
        return self.op in ("key", "store.wait")


def parse_stacks(record: Evidence) -> list[Fact]:
    """Data: {look, pid, role, threads: [{thread_id, os_thread_id, name, active, owns_gil, frames
    leaf first}]}.
    """
    data = record.data
    pid = fields.whole(data, "pid")
    pid = record.subject.pid if pid is None else pid
    if pid is None:
        raise fields.UnreadableError("stacks without a pid")
    role = fields.text(data, "role") or record.subject.role or "rank"
    look = fields.whole(data, "look") or 1
    timer_s = fields.number(data, "timer_s")

    def thread(row: Mapping[str, Any]) -> Thread:
        name, os_id = fields.text(row, "name"), fields.whole(row, "os_thread_id")
        return Thread(
            evidence=(record.id,),
            cell=record.cell,
            rank=record.subject.rank,
            pid=pid,
            role=role,
            look=look,
            name=name,
            os_thread_id=os_id,
            active=row.get("active") is True,
            owns_gil=row.get("owns_gil") is True,
            main=os_id == pid or name == "MainThread",
            frames=frames_of(fields.items(row, "frames"), leaf_first=True),
            native=record.kind == "stacks.native",
            at=record.began or None,
            timer_s=timer_s,
        )

    threads: list[Thread] = fields.each(fields.items(data, "threads"), thread)
    if threads and not any(
        one.main for one in threads
    ):  # a thread that renamed itself, or another PID namespace
        first = next(
            (
                place
                for place, one in enumerate(threads)
                if one.frames and one.frames[0].name == "<module>"
            ),
            0,
        )
        threads[first] = dataclasses.replace(threads[first], main=True)
    return list(threads)
