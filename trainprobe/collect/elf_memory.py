"""Symbols of a running process, read from its memory: no file is opened, so containers and deleted
libraries make no difference.

Formats: elf(5), the GNU hash table (as ld.so looks names up), /proc/PID/maps (proc(5)). 64 bit,
little endian.
"""

from __future__ import annotations

import os
import struct
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence

from trainprobe.collect import procfs

PAGE = 4096
HEADER_BYTES, PROGRAM_HEADER_BYTES, SYMBOL_BYTES = 64, 56, 24
PT_LOAD, PT_DYNAMIC, EXECUTABLE = 1, 2, 1
DT_STRTAB, DT_SYMTAB, DT_GNU_HASH = 5, 6, 0x6FFFFEF5
ENTRIES_CAP = 512
CHAIN_CAP = 4096
MAPS_CAP_BYTES = 8 * 2**20


class Mapping(NamedTuple):
    """A line of /proc/PID/maps. `mode` is like `r-xp`."""

    start: int
    end: int
    mode: str
    offset: int
    path: str


class Library(NamedTuple):
    """A mapped ELF file: where its addresses count from, and what its program headers say."""

    path: str
    bias: int
    dynamic: int
    code_end: int  # first byte after its executable segment, 0 for none


class Memory:
    """The memory of a process, read-only; use it in `with`. Raises OSError."""

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> Memory:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self, address: int, size: int) -> bytes:
        try:
            found = os.pread(self._fd, size, address)
        except OverflowError as error:
            raise OSError(14, f"{address:#x} is no address") from error
        if len(found) < size:
            raise OSError(14, f"only {len(found)} of {size} bytes at {address:#x} could be read")
        return found

    def numbers(self, address: int, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))


def mappings(pid: int) -> List[Mapping]:
    """Every mapping of the process; empty where they are hidden."""
    found = []
    try:
        text = procfs.read(f"/proc/{pid}/maps", MAPS_CAP_BYTES)
    except OSError:
        return []
    for line in text.splitlines():
        columns = line.split(None, 5)
        start, dash, end = columns[0].partition("-") if len(columns) >= 5 else ("", "", "")
        if dash:
            found.append(
                Mapping(
                    int(start, 16),
                    int(end, 16),
                    columns[1],
                    int(columns[2], 16),
                    columns[5] if len(columns) > 5 else "",
                )
            )
    return found


def library(memory: Memory, first: Mapping) -> Optional[Library]:
    """Read the headers of the file mapped at `first`; None if no 64-bit ELF. Raises OSError."""
    header = memory.read(first.start, HEADER_BYTES)
    if header[:6] != b"\x7fELF\x02\x01":
        return None
    offset = struct.unpack_from("<Q", header, 32)[0]
    size, count = struct.unpack_from("<HH", header, 54)
    if size != PROGRAM_HEADER_BYTES or count > 64:
        return None
    table = memory.read(first.start + offset, size * count)
    bias: Optional[int] = None
    dynamic = code_end = 0
    for place in range(count):
        kind, flags, _, address, _, _, in_memory = struct.unpack_from(
            "<IIQQQQQ", table, place * size
        )
        if kind == PT_LOAD and bias is None:
            bias = first.start - address // PAGE * PAGE
        if kind == PT_LOAD and flags & EXECUTABLE:
            code_end = address + in_memory
        if kind == PT_DYNAMIC:
            dynamic = address
    if bias is None or not dynamic:
        return None
    return Library(first.path, bias, bias + dynamic, bias + code_end if code_end else 0)


def symbols(memory: Memory, found: Library, wanted: Iterable[str]) -> Dict[str, int]:
    """Addresses of those of the exported names that the library defines. Raises OSError."""
    tags: Dict[int, int] = {}
    for place in range(ENTRIES_CAP):
        tag, value = memory.numbers(found.dynamic + 16 * place, 2)
        if tag == 0:
            break
        # The loader turns these into addresses; one below the library was left as it is in the
        # file.
        tags[tag] = value if value >= found.bias else value + found.bias
    if not {DT_STRTAB, DT_SYMTAB, DT_GNU_HASH} <= set(tags):
        return {}
    return {
        name: address
        for name in wanted
        for address in [_look_up(memory, found.bias, tags, name.encode())]
        if address
    }


def room_after_code(memory: Memory, found: Library, maps: Sequence[Mapping]) -> bytes:
    """The unused bytes between a library's code and the end of its last page."""
    end = -(-found.code_end // PAGE) * PAGE
    inside = any(
        mapping.start < end <= mapping.end and "x" in mapping.mode and mapping.path == found.path
        for mapping in maps
    )
    return memory.read(found.code_end, end - found.code_end) if found.code_end and inside else b""


def _look_up(memory: Memory, bias: int, tags: Dict[int, int], name: bytes) -> int:
    hashed = 5381
    for letter in name:
        hashed = (hashed * 33 + letter) & 0xFFFFFFFF
    table = tags[DT_GNU_HASH]
    buckets, first, blooms, _ = struct.unpack("<4I", memory.read(table, 16))
    if not buckets:
        return 0
    bucket_at = table + 16 + 8 * blooms
    place = struct.unpack("<I", memory.read(bucket_at + 4 * (hashed % buckets), 4))[0]
    for index in range(place, place + CHAIN_CAP) if place >= first else ():
        link = struct.unpack("<I", memory.read(bucket_at + 4 * buckets + 4 * (index - first), 4))[0]
        if link | 1 == hashed | 1:
            spelled, _, _, section, value, _ = struct.unpack(
                "<IBBHQQ", memory.read(tags[DT_SYMTAB] + SYMBOL_BYTES * index, SYMBOL_BYTES)
            )
            if section and memory.read(tags[DT_STRTAB] + spelled, len(name) + 1) == name + b"\0":
                return bias + int(value)
        if link & 1:
            break
    return 0
