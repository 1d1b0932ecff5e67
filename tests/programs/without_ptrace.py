"""Run a program in which ptrace is refused, as a container's seccomp profile does:
`without_ptrace.py PROGRAM ARGV…` (x86-64).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2  # linux/prctl.h
PTRACE = 101
ERRNO_EPERM, ALLOW = 0x00050001, 0x7FFF0000


def main() -> None:
    rows = [
        (0x20, 0, 0, 0),
        (0x15, 0, 1, PTRACE),
        (0x06, 0, 0, ERRNO_EPERM),
        (0x06, 0, 0, ALLOW),
    ]  # load the number; is it ptrace?
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, FILTER, program, 0, 0):
        raise SystemExit(f"no filter: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
