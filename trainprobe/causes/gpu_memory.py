"""What an out-of-memory message of a GPU allocator says in numbers, and which of the possible
illnesses the numbers and the place point to.

Wordings: c10/cuda/CUDACachingAllocator.cpp of torch 1.0 to 2.13, and its twins for HIP, XPU and
NPU. Up to 2.0: `(GPU 0; 15.78 GiB total capacity; 13.50 GiB already allocated; 1.10 GiB free; 13.70
GiB reserved in total by PyTorch)`; from 2.1 on: `GPU 0 has a total capacity of 79.15 GiB of which
1.20 GiB is free. [Process 7 has 60.20 GiB memory in use.] Including non-PyTorch memory, this
process has … memory in use. … Of the allocated memory … is allocated by PyTorch, and … is reserved
by PyTorch but unallocated.`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import Statement, first_to_fail, statement, text_of
from trainprobe.facts import LogEvent, RankException
from trainprobe.signatures.messages import message
from trainprobe.stacks.frames import Frame

WORDING = message("gpu-memory")
Kind = Literal["pinned", "objects", "loading", "others", "pieces", "need"]

_SIZE = r"(\d[\d.]{0,12} (?:[KMGT]i?B|bytes))"
_ASKED = re.compile(rf"Tried to allocate {_SIZE}")
_OLD = re.compile(
    rf"\(\w{{2,4}} (\d{{1,3}}); {_SIZE} total capacity; {_SIZE} already allocated; {_SIZE} free;"
    rf" (?:[^)]{{0,80}}; )?{_SIZE} (reserved in total|cached)"
)
_NEW = re.compile(
    rf"\w{{2,4}} (\d{{1,3}}) has a total capaci?ty of {_SIZE}(?: of which {_SIZE} is free)?"
)
_MINE = re.compile(rf"this process has {_SIZE} memory in use")
_PROCESS = re.compile(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_ALLOCATED = re.compile(rf"{_SIZE} is allocated by PyTorch")
_UNALLOCATED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_UNITS = {
    "bytes": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}

# A CUDA context, NCCL's buffers and library workspaces live outside torch's allocator: up to some
# GiB are this process's own.
OWN_OVERHEAD_BYTES = 2 * 2**30
OTHERS_SHARE = 0.10  # of the device: from here on another holder matters
# where the driver does not tell what the process itself holds: NCCL, graphs or a second allocator
# in it (an inference engine beside the training) may hold that much
UNTOLD_SHARE = 0.40
MOST_HELD, HOLDERS_CAP = 0.9, 4
PIECES_SHARE = 0.10  # of the device: reserved and not allocated
PIECES_BYTES = 2**30

_PINNING = re.compile(
    r"pin_memory|pinned|cudaHostAlloc|cudaHostRegister|hipHostMalloc|page-?locked", re.IGNORECASE
)
_OBJECTS = re.compile(
    r"\b(?:all_gather_object|gather_object|broadcast_object_list|scatter_object_list"
    r"|_object_to_tensor|_tensor_to_object|gather_for_metrics)\b"
)
_RESTORES = re.compile(r"\b_load_from_bytes\b")
_GATHERS = re.compile(
    r"\b(?:all_?gather|gather|reduce_dict|synchronize_between_processes"
    r"|accumulate_predictions\w{0,40}|merge)\b"
)
LOADING = re.compile(
    r"\b(?:from_pretrained|load_state_dict|load_checkpoint\w{0,40}|load_pretrained\w{0,40}"
    r"|default_restore_location|restore_location|_load_state_dict\w{0,40}"
    r"|_load_pretrained_model|load_model|load_file|safe_open|init_empty_weights|dispatch_model"
    r"|_legacy_load|set_module_tensor_to_device|load_weights?)\b"
)
_FIRST_TOUCH = re.compile(
    r"\b(?:_lazy_init|set_device|_cuda_init|mem_get_info|init_device|_cuda_setDevice"
    r"|get_device_properties)\b"
)


def bytes_of(text: str | None) -> float | None:
    """`1.50 GiB` as bytes; None where it is no size."""
    number, _, unit = (text or "").partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return None


@dataclass(frozen=True)
class Numbers:
    """Sizes in bytes, None if not in the message; `mine` is this process's, `reserved` torch's.
    `untold`: the message has a number for `mine` that cannot be right.
    """

    asked: float | None = None
    gpu: int | None = None
    total: float | None = None
    free: float | None = None
    allocated: float | None = None
    reserved: float | None = None
    mine: float | None = None
    named: tuple[tuple[int, float], ...] = ()
    untold: bool = False

    @property
    def holders(self) -> tuple[tuple[int, float], ...]:
        """The named processes that hold the most, until these have nine tenths of what all hold:
        to end the others would free nothing.
        """
        ranked = sorted(self.named, key=lambda one: -one[1])
        wanted, found = MOST_HELD * sum(held for _, held in ranked), []
        for pid, held in ranked:
            if wanted <= 0:
                break
            found.append((pid, held))
            wanted -= held
        return tuple(found[:HOLDERS_CAP])

    @property
    def unallocated(self) -> float | None:
        if self.reserved is not None and self.allocated is not None:
            return max(0.0, self.reserved - self.allocated)
        return None

    @property
    def others(self) -> float | None:
        """What neither is free nor this process's own. A process that names nobody as itself
        (its PIDs are a container's) may need some for its context.
        """
        if self.total is None or self.free is None:
            return None
        if self.mine is not None:
            return max(0.0, self.total - self.free - self.mine)
        if self.reserved is not None:
            return max(0.0, self.total - self.free - self.reserved - OWN_OVERHEAD_BYTES)
        return None

    @property
    def held_by_others(self) -> bool:
        """Is it much, and would the request have been met without it?"""
        others = self.others
        if others is None or self.total is None:
            return False
        share = UNTOLD_SHARE if self.untold and not self.named else OTHERS_SHARE
        return others >= max(share * self.total, 2**30) and (
            self.asked is None or self.asked <= (self.free or 0) + others
        )

    @property
    def in_pieces(self) -> bool:
        """Does torch hold more than was asked for, without using it, and much of the device?"""
        gap = self.unallocated
        if gap is None or self.asked is None or gap < self.asked:
            return False
        return gap >= max(PIECES_SHARE * (self.total or 0), PIECES_BYTES) or gap >= max(
            4 * self.asked, PIECES_BYTES
        )


def read_numbers(text: str, captured: Mapping[str, str] | None = None) -> Numbers:
    """Read the numbers of one message; `captured` replaces what was cut from the line."""
    took = captured or {}
    asked = _first(_ASKED, text) or took.get("asked")
    old = _OLD.search(text)
    if old is not None:
        gpu, total, allocated, free, reserved, word = old.groups()
        held, used = bytes_of(reserved), bytes_of(allocated)
        if word == "cached" and held is not None and used is not None and held < used:
            held += used  # torch 1.0 to 1.1 print what is cached beside what is allocated
        return Numbers(bytes_of(asked), int(gpu), bytes_of(total), bytes_of(free), used, held)
    new = _NEW.search(text)
    gpu, total, free = (
        new.groups() if new is not None else (took.get("gpu"), took.get("total"), took.get("free"))
    )
    used = bytes_of(_first(_ALLOCATED, text) or took.get("allocated"))
    gap = bytes_of(_first(_UNALLOCATED, text) or took.get("unallocated"))
    held = bytes_of(took.get("reserved")) if gap is None else (used or 0) + gap
    capacity = bytes_of(total)
    mine = bytes_of(_first(_MINE, text) or took.get("mine"))
    # a driver that may not tell answers with all ones, printed as 17179869184.00 GiB; in a
    # container it finds no process of this number, 0 bytes
    untold = mine is not None and (
        (capacity is not None and mine > 1.5 * capacity) or mine < (used or 0)
    )
    named = tuple(
        (int(pid), count)
        for pid, size in _PROCESS.findall(text)
        if (count := bytes_of(size)) is not None
    )
    return Numbers(
        bytes_of(asked),
        int(gpu) if gpu else None,
        capacity,
        bytes_of(free),
        used,
        held,
        None if untold else mine,
        named,
        untold,
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match.group(1) if match is not None else None


@dataclass(frozen=True)
class Shortage:
    """The message, its numbers, the frames below it, and the kind of shortage."""

    heard: Statement
    numbers: Numbers
    frames: tuple[Frame, ...]
    kind: Kind
    why: str = ""


def shortage(scene: Scene) -> Shortage | None:
    """The suspects' first word of GPU memory that could not be had; None where nobody says so."""
    found = statement(scene, WORDING)
    # the job survived what it said long before, and what came after explains nothing
    if found is None or found.late:
        return None
    fact = found.fact
    exception = fact if isinstance(fact, RankException) else None
    text = text_of(exception) if exception is not None else found.text
    numbers = read_numbers(text, fact.captured if isinstance(fact, LogEvent) else None)
    # the sentence with the numbers may be another line, or cut in this one
    if numbers.total is None:
        more = [event for event in scene.events("cuda-oom") if event.captured.get("total")]
        numbers = read_numbers(more[0].line, more[0].captured) if more else numbers
    frames = exception.frames if exception is not None else ()
    kind, why = _kind(scene, numbers, frames, f"{text}\n{found.text}")
    return Shortage(found, numbers, frames, kind, why)


def weigh_allocator(scene: Scene, found: Shortage, who: str = "The allocator") -> Weighings:
    """The message itself, and that its rank failed first."""
    says = f"{who} says: {short(found.heard.text, 120)}"
    points = 26 if found.heard.origin else 13
    yield weighing(points, "suspects-log", says, found.heard.fact)
    yield from first_to_fail(scene)


def _kind(scene: Scene, numbers: Numbers, frames: tuple[Frame, ...], text: str) -> tuple[Kind, str]:
    last = frames[-1] if frames else None
    pinning = first_found(
        frame for frame in frames[-3:] if _PINNING.search(f"{frame.file} {frame.name}")
    )
    if pinning is None and last is not None and _PINNING.search(last.text):
        pinning = last
    if (
        pinning is not None
        or _PINNING.search(text)
        or (not frames and scene.events("pin-memory-frame"))
    ) and numbers.total is None:
        return "pinned", pinning.where if pinning is not None else ""
    words = [f"{frame.name} {frame.text}" for frame in frames]
    gathering = first_found(
        frame for frame, word in zip(frames, words, strict=True) if _OBJECTS.search(word)
    )
    restored = any(_RESTORES.search(word) for word in words)
    if gathering is None and restored:
        gathering = first_found(
            frame for frame, word in zip(frames, words, strict=True) if _GATHERS.search(word)
        )
    if gathering is not None or (not frames and scene.events("object-collective-frame")):
        return "objects", gathering.where if gathering is not None else ""
    loading = first_found(
        frame for frame, word in zip(frames, words, strict=True) if LOADING.search(word)
    )
    siblings = {end.pid for end in scene.endings(scene.world) if end.pid}
    if numbers.held_by_others and not (
        numbers.named and all(pid in siblings for pid, _ in numbers.named)
    ):
        if loading is not None and len(scene.world) > 1:
            return "loading", loading.where
        return "others", ""
    if numbers.total is None and any(_FIRST_TOUCH.search(frame.name) for frame in frames[-2:]):
        return "others", last.where if last is not None else ""
    return ("pieces", "") if numbers.in_pieces else ("need", "")
