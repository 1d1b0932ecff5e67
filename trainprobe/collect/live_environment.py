"""Which number a rank has given itself: variables that a process has set since it started, read
from its memory.

/proc/PID/environ shows what a process was started with, and not even that where setproctitle wrote
a title over it. Launchers inside Python (Ray, Lightning) set RANK and its like later; the C
library's `environ` holds them. Only the variables that make a rank are kept, nothing is paused.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Dict, Optional

from trainprobe.collect import elf_memory
from trainprobe.collect.elf_memory import Memory
from trainprobe.targets.environment import environ_of
from trainprobe.targets.numbers import OF_ENVIRONMENT, OF_SLURM, Number, from_environment

NAMES = {name for row in (*OF_ENVIRONMENT, OF_SLURM) for name in row[:3] if name} | {
    *("LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "SLURM_STEP_ID", "SLURM_STEPID")
}
VARIABLES_CAP = 4096
VARIABLE_BYTES = 48  # the longest name, `=` and a number
_C_LIBRARY = re.compile(r"libc(?:\.so\.6|-2\.\d+\.so)|ld-musl-.*|libc\.musl-.*")


def own_number(pid: int) -> Optional[Number]:
    """Return the number that a process has set itself since its start, or None."""
    number = from_environment(live_environment(pid))
    return (
        number if number.rank is not None and number != from_environment(environ_of(pid)) else None
    )


def live_environment(pid: int) -> Dict[str, str]:
    """Return the current values of NAMES; empty where memory cannot be read."""
    try:
        with Memory(pid) as memory:
            array = _array(memory, pid)
            return _read(memory, array) if array else {}
    except (OSError, struct.error, ValueError):
        return {}


def _array(memory: Memory, pid: int) -> Optional[int]:
    """The address of the variables: the program's copy of `environ`, else the C library's."""
    program = os.readlink(f"/proc/{pid}/exe")
    candidates = [
        mapping for mapping in elf_memory.mappings(pid) if mapping.offset == 0 and mapping.path
    ]
    for first in sorted(candidates, key=lambda process: process.path != program):
        if first.path != program and not _C_LIBRARY.fullmatch(os.path.basename(first.path)):
            continue
        found = elf_memory.library(memory, first)
        at = (
            elf_memory.symbols(memory, found, ("environ", "__environ")) if found is not None else {}
        )
        for address in at.values():
            array: int = memory.numbers(address, 1)[0]
            if array:
                return array
    return None


def _read(memory: Memory, array: int) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for place in range(VARIABLES_CAP):
        address = memory.numbers(array + 8 * place, 1)[0]
        if not address:
            break
        name, equals, value = _text(memory, address).partition("=")
        if equals and name in NAMES:
            found[name] = value
    return found


def _text(memory: Memory, address: int) -> str:
    """The beginning of a variable, which may stand right before memory that is not there."""
    size = min(VARIABLE_BYTES, elf_memory.PAGE - address % elf_memory.PAGE)
    head = memory.read(address, size)
    if b"\0" not in head and size < VARIABLE_BYTES:
        head += memory.read(address + size, VARIABLE_BYTES - size)
    return head.partition(b"\0")[0].decode("utf-8", "replace")
