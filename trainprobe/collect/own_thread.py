"""Run a line of Python in a live process, in a thread of its own there: which thread to borrow
for its start, and where its code may stand.
"""

from __future__ import annotations

import os
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from trainprobe.collect import elf_memory, procfs
from trainprobe.collect.elf_memory import Library, Mapping, Memory
from trainprobe.system import borrowed_thread
from trainprobe.system.borrowed_thread import (
    CODE_BYTES,
    FUNCTIONS,
    STACK_BYTES,
    THREAD_NAME,
    Borrowed,
)

# A thread that sleeps in one of these holds no lock of the C library, so pthread_create cannot wait
# for the thread itself, and each can be begun again or may be interrupted (signal(7)). x86-64: read
# poll select recvfrom recvmsg accept wait4 futex nanosleep clock_nanosleep
# epoll_wait waitid accept4, and restart_syscall: one of these, interrupted before
# (asm/unistd_64.h).
SLEEPS = frozenset((0, 7, 23, 45, 47, 43, 61, 202, 35, 230, 232, 247, 288, 219))
# pselect6 ppoll epoll_pwait, and which argument is the signal mask: with one, the kernel keeps a
# state of its own for the thread.
MASKED = {270: 6, 271: 4, 281: 5}
FUTEX, RESTARTED, FUTEX_TIMEOUT = 202, 219, 4
THREADS_CAP = 512
MOST_TRIED, AGAIN_S = 4, 0.02


class Place(NamedTuple):
    """The addresses needed to start a thread, and the threads to borrow, the best first."""

    at: int
    functions: Tuple[int, ...]
    threads: Tuple[int, ...]


def start(pid: int, text: bytes, deadline_s: float = 1.0) -> Borrowed:
    """Start a thread in the process that runs `text` (Python, some hundred bytes). Nothing has been
    changed when it is refused.

    A process whose threads all run just now is asked again, until `deadline_s` has passed.
    """
    ends = time.monotonic() + deadline_s
    reason = borrowed_thread.unsupported()
    if reason:
        return Borrowed(reason)
    if any(
        procfs.read_page(f"/proc/{pid}/task/{tid}/comm") == THREAD_NAME + "\n" for tid in _tids(pid)
    ):
        return Borrowed(
            "a thread that an earlier look started still waits for the interpreter in process"
            f" {pid}"
        )
    answer = Borrowed(
        f"no thread of process {pid} slept in a way that lets us borrow it within {deadline_s:g} s"
    )
    while True:
        place, reason = find_place(pid, CODE_BYTES + len(text) + 1)
        if place is None:
            return Borrowed(reason)
        for tid in place.threads[:MOST_TRIED]:
            answer = borrowed_thread.start_thread(tid, place.at, list(place.functions), text)
            if not answer.refused:
                return answer
        if time.monotonic() > ends:
            return answer
        time.sleep(AGAIN_S)


def find_place(pid: int, size: int) -> Tuple[Optional[Place], str]:
    """Where `size` bytes of code fit, and what to call; else None and why. Only reads."""
    maps = elf_memory.mappings(pid)
    if not maps:
        return None, f"the memory map of process {pid} is hidden"
    try:
        with Memory(pid) as memory:
            libraries = _libraries(memory, maps)
            functions = _functions(memory, libraries)
            missing = [name for name in FUNCTIONS if name not in functions]
            if missing:
                return (
                    None,
                    (
                        f"process {pid} exports no {missing[0]}; its Python may be built in an"
                        " unusual way"
                    ),
                )
            at = next(
                (
                    found
                    for library in libraries
                    for found in [_room(memory, library, maps, size)]
                    if found
                ),
                0,
            )
    except OSError as error:
        return None, f"the memory of process {pid} cannot be read: {error.strerror or error}"
    if not at:
        return None, f"no library of process {pid} has {size} bytes of room behind its code"
    return Place(at, tuple(functions[name] for name in FUNCTIONS), tuple(_sleepers(pid, maps))), ""


def _libraries(memory: Memory, maps: Sequence[Mapping]) -> List[Library]:
    """The mapped files that are ELF, Python's and the C library's first."""
    first: Dict[str, Mapping] = {}
    for mapping in maps:
        if (
            mapping.offset == 0
            and mapping.path.startswith("/")
            and not mapping.path.startswith(("/dev/", "/memfd:", "/SYSV"))
        ):
            first.setdefault(mapping.path, mapping)

    def order(path: str) -> int:
        name = os.path.basename(path)
        return (
            0
            if name.startswith(("libpython", "python"))
            else (
                1
                if name.startswith(("libpthread", "libpthread-"))
                else 2
                if name.startswith("libc")
                else 3
            )
        )

    found: List[Library] = []
    for path in sorted(first, key=order):
        try:
            library = elf_memory.library(memory, first[path])
        except OSError:
            continue  # the process has unmapped it since: it maps files while it imports
        if library is not None:
            found.append(library)
    return found


def _functions(memory: Memory, libraries: Sequence[Library]) -> Dict[str, int]:
    functions: Dict[str, int] = {}
    for library in libraries:
        missing = [name for name in FUNCTIONS if name not in functions]
        if not missing:
            break
        # Another copy of an interpreter may be loaded; the first library that has one of its
        # functions gives all of them.
        for name, address in elf_memory.symbols(memory, library, missing).items():
            functions.setdefault(name, address)
    return functions


def _room(memory: Memory, mapping: Library, maps: Sequence[Mapping], size: int) -> int:
    """An address, a multiple of 16, with `size` free bytes behind the library's code, or 0."""
    room = elf_memory.room_after_code(memory, mapping, maps)
    at = -(-mapping.code_end // 16) * 16
    return at if len(room) - (at - mapping.code_end) >= size + 8 else 0


def _sleepers(pid: int, maps: Sequence[Mapping]) -> List[int]:
    """Threads that sleep in an interruptible system call, with room on their stack."""
    found: List[Tuple[int, int]] = []
    for tid in _tids(pid):
        columns = (procfs.read_page(f"/proc/{pid}/task/{tid}/syscall") or "").split()
        now = procfs.stat(pid, tid)
        if now is None or now.state != "S" or len(columns) < 9 or not columns[0].isdecimal():
            continue
        mask = MASKED.get(int(columns[0]))
        if not (int(columns[0]) in SLEEPS or (mask is not None and int(columns[mask], 16) == 0)):
            continue
        if not _has_stack(int(columns[7], 16), tid == pid, maps):
            continue
        forever = int(columns[0]) not in (FUTEX, RESTARTED) or int(columns[FUTEX_TIMEOUT], 16) == 0
        # The main thread comes first: its stack grows, and nobody made it in an unusual way.
        found.append((2 * (tid != pid) + (not forever), tid))
    return [tid for _, tid in sorted(found)]


def _has_stack(pointer: int, main: bool, maps: Sequence[Mapping]) -> bool:
    """Whether the stack, the main thread's or a pthread's, has enough room."""
    for place, mapping in enumerate(maps):
        if mapping.start <= pointer < mapping.end:
            if main:
                return mapping.path == "[stack]"
            guard = maps[place - 1] if place else None
            guarded = (
                guard is not None and guard.end == mapping.start and guard.mode.startswith("---")
            )
            return not mapping.path and guarded and pointer - mapping.start >= STACK_BYTES
    return False


def _tids(pid: int) -> List[int]:
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task") if name.isdecimal())[
            :THREADS_CAP
        ]
    except OSError:
        return []
