"""Have a sleeping thread of another process start one more thread there, by ptrace, in a way that
our own death cannot spoil.

The thread is stopped for about a millisecond; no other thread is. Its registers are set in one
system call to code of ours, which saves them, calls `pthread_create`, puts them back and goes on
with the system call in which the thread was. No breakpoint is set and nobody has to be there when
it is done: whoever is killed, at whatever moment, the process goes on. (A debugger's way to call a
function ends in a breakpoint, and a process that reaches it after the debugger's death dies of
SIGTRAP.) x86-64 only. ptrace(2), signal(7) on system calls that are begun again.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
import threading
import time
from typing import List, NamedTuple

PTRACE_PEEKTEXT, PTRACE_POKETEXT, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_DETACH = 1, 4, 12, 13, 17
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_EVENT_STOP = 0x4206, 0x4207, 128
WALL = 0x40000000
RAX, ORIG_RAX, RIP, CS, RSP = 10, 15, 16, 17, 19  # places in struct user_regs_struct
REGISTERS = 27
USER_CODE_SEGMENT = 0x33
BEGIN_AGAIN, RESTART_BLOCK, RESTART_SYSCALL = frozenset((512, 513, 514)), 516, 219
SYSCALL = b"\x0f\x05"
RED_ZONE_BYTES = 256  # 128 by the ABI
STACK_BYTES = 64 * 1024  # what our code and pthread_create may need of the borrowed thread's stack
THREAD_NAME = "trainprobe"
FUNCTIONS = (
    "pthread_create",
    "pthread_self",
    "pthread_detach",
    "PyGILState_Ensure",
    "PyRun_SimpleStringFlags",
    "PyGILState_Release",
)

# The borrowed thread: save flags, registers and vector registers, pthread_create(&room, 0, started,
# 0), restore, go back.
_BORROWED = bytes.fromhex(
    "9cfc 50515253555657 4150415141524153 4154415541564157"  # pushf, cld, push all
    "4889e5 4883e4c0 4881ec00100000"  # mov rbp,rsp; and rsp,-64; sub rsp,4096
    # the header of the area that xsave writes must be zero
    "31c0 488dbc2400020000 b908000000 f348ab"
    "b8e7000000 31d2 480fae2424"  # xsave64 [rsp], for x87, SSE, AVX, AVX-512
    "4883ec40 4889e7 31f6 488d1540000000 31c9 ff1563ffffff 4883c440"  # call pthread_create
    "b8e7000000 31d2 480fae2c24"  # xrstor64
    "4889ec 415f415e415d415c 415b415a41594158 5f5e5d5b5a5958 9d"  # mov rsp,rbp; pop all, popf
    "488b2561ffffff ff2563ffffff"  # mov rsp,[was]; jmp [where]
)
# The new thread: prctl(PR_SET_NAME), pthread_detach(pthread_self()), take the GIL, run the text,
# give the GIL back, end.
_STARTED = bytes.fromhex(
    "53 b89d000000 bf0f000000 488d3534000000 0f05ff1519ffffff 4889c7 ff1518ffffffff151affffff 89c3"
    " 488d3d1f000000 31f6 ff1511ffffff 89df ff1511ffffff31c0 5b c3"
)
CODE_BYTES = 8 * (len(FUNCTIONS) + 2) + len(_BORROWED) + len(_STARTED) + len(THREAD_NAME) + 1


class Borrowed(NamedTuple):
    """`refused` says why nothing was changed; `stopped_s` is how long the thread stood."""

    refused: str
    stopped_s: float = 0.0


def unsupported() -> str:
    """Why this cannot be done on this machine, or an empty string."""
    if platform.machine() != "x86_64" or struct.calcsize("P") != 8:
        return (
            "a thread can be started in another process on x86-64 only, and this is"
            f" {platform.machine()}"
        )
    with (
        contextlib.suppress(OSError),
        open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file,
    ):
        if " xsave " not in file.read(16384):
            return "this processor has no xsave"
    return ""


def start_thread(
    tid: int, at: int, functions: List[int], text: bytes, deadline_s: float = 0.5
) -> Borrowed:
    """Have thread `tid` start a thread that runs the Python `text`; `at` is room for CODE_BYTES
    plus the text in executable memory.

    `functions` are the addresses of FUNCTIONS in the target. Returns at once: the new thread has
    then perhaps not yet begun.
    """
    answers: List[Borrowed] = []
    # The kernel detaches from all that a thread traces when that thread ends: whatever happens
    # here, nothing stays stopped.
    tracer = threading.Thread(
        target=lambda: answers.append(_start(tid, at, functions, text, deadline_s)),
        name="trainprobe-borrow",
        daemon=True,
    )
    tracer.start()
    tracer.join(deadline_s + 1.0)
    return (
        answers[0]
        if answers
        else Borrowed(f"thread {tid} could not be borrowed within {deadline_s:g} s")
    )


def _start(tid: int, at: int, functions: List[int], text: bytes, deadline_s: float) -> Borrowed:
    try:
        _ptrace(PTRACE_SEIZE, tid)
    except OSError as error:
        return Borrowed(
            f"the kernel refused to let us trace thread {tid}: {os.strerror(error.errno or 0)}"
        )
    began = time.monotonic()
    try:
        _ptrace(PTRACE_INTERRUPT, tid)
        status = 0, 0
        while status[0] != tid:
            if time.monotonic() > began + deadline_s:
                return Borrowed(f"thread {tid} did not stop within {deadline_s:g} s")
            time.sleep(0.0001)
            status = os.waitpid(tid, WALL | os.WNOHANG)
        if not os.WIFSTOPPED(status[1]):
            return Borrowed(f"thread {tid} ended")
        stopped_by_us = (
            status[1] >> 16 == PTRACE_EVENT_STOP and os.WSTOPSIG(status[1]) == signal.SIGTRAP
        )
        refused = (
            _redirect(tid, at, functions, text)
            if stopped_by_us
            else f"thread {tid} was about to take a signal"
        )
        # A signal that it was about to take is its own, and it gets it.
        _ptrace(
            PTRACE_DETACH,
            tid,
            0,
            0 if status[1] >> 16 == PTRACE_EVENT_STOP else os.WSTOPSIG(status[1]),
        )
        return Borrowed(refused, time.monotonic() - began)
    except OSError as error:
        return Borrowed(f"thread {tid} could not be borrowed: {os.strerror(error.errno or 0)}")


def _redirect(tid: int, at: int, functions: List[int], text: bytes) -> str:
    """Write the code, then set the registers; until then nothing has changed."""
    registers = (ctypes.c_uint64 * REGISTERS)()
    _ptrace(PTRACE_GETREGS, tid, 0, ctypes.addressof(registers))
    was = list(registers)
    if was[CS] != USER_CODE_SEGMENT:
        return f"thread {tid} is no 64-bit thread"
    if was[ORIG_RAX] == 2**64 - 1:
        return f"thread {tid} was in no system call after all"
    back, rax = was[RIP], was[RAX]
    failed = 2**64 - rax
    if failed in BEGIN_AGAIN or failed == RESTART_BLOCK:
        # The kernel would have it begin the call again; it will, but only after our code.
        back, rax = (
            back - len(SYSCALL),
            (RESTART_SYSCALL if failed == RESTART_BLOCK else was[ORIG_RAX]),
        )
        if _peek(tid, back)[: len(SYSCALL)] != SYSCALL:
            return f"thread {tid} has entered the kernel in a way that we do not know"
    slots = struct.pack("<8Q", *functions, was[RSP], back)
    _poke(tid, at, slots + _BORROWED + _STARTED + THREAD_NAME.encode() + b"\0" + text + b"\0")
    registers[RAX], registers[ORIG_RAX] = rax, 2**64 - 1
    registers[RIP], registers[RSP] = at + len(slots), was[RSP] - RED_ZONE_BYTES
    _ptrace(PTRACE_SETREGS, tid, 0, ctypes.addressof(registers))
    return ""


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> int:
    ctypes.set_errno(0)
    answer = int(_libc.ptrace(request, tid, address, data))
    if answer == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def _peek(tid: int, address: int) -> bytes:
    return struct.pack("<q", _ptrace(PTRACE_PEEKTEXT, tid, address))


def _poke(tid: int, address: int, content: bytes) -> None:
    if address % 8:
        raise OSError(errno.EINVAL, "unaligned")
    content += b"\0" * (-len(content) % 8)
    for place in range(0, len(content), 8):
        _ptrace(PTRACE_POKETEXT, tid, address + place, struct.unpack_from("<Q", content, place)[0])
