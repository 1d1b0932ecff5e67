"""Signs of life of the user's command: what its witness wrote and what it printed. Read as it
grows, cheaply.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

READ_CAP_BYTES = 256 * 1024
NUMBERS_CAP = 64
MARKS_CAP = 4000
_WITNESS = re.compile(r"^(?:rank(\d+)|norank)\.(\d+)\.(jsonl|ring)$")
# What training loops and their progress bars print: "step 12", "Step: 12", "iter=12", "global_step
# 12", "12/100 [00:01<".
_STEP = re.compile(
    rb"(?i)\b(?:global[_ ]?step|step|iter(?:ation)?|batch)s?\b[\s:=#\[(/,]{0,3}(\d{1,9})\b"
    rb"|\b(\d{1,9})/\d{1,9} \[\d+:\d\d<"
)


class Growing:
    """A file that others append to. `new()` returns what came since the last call, at most the
    newest `READ_CAP_BYTES` of it.
    """

    def __init__(self, path: str) -> None:
        self.path, self.offset, self.bytes = path, 0, 0

    def new(self) -> bytes:
        try:
            size = os.stat(self.path).st_size
        except OSError:
            return b""
        if size == self.bytes and size >= self.offset:
            return b""
        self.bytes = size
        if size < self.offset:  # cut back, because it had grown too long
            self.offset = max(0, size - READ_CAP_BYTES)
        self.offset = max(self.offset, size - READ_CAP_BYTES)
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                block = file.read(READ_CAP_BYTES)
        except OSError:
            return b""
        self.offset += len(block)
        return block


@dataclass
class Witnessed:
    """What the witness of one process reported. `rank` is None where it knew none. Counts are the
    latest; `marks` are (moment, steps so far), `loaders` (workers, rows in a batch) of its first
    DataLoaders.
    """

    rank: int | None
    pid: int
    steps: int = 0
    batches: int = 0
    backward_calls: int = 0
    torch_imported: bool | None = None
    loader_empty: bool = False
    exited: bool = False
    leaving: bool = False  # its main thread raised, or called exit
    steps_uncounted: bool = False  # compiled steps, which no hook sees
    event_names: set[str] = field(default_factory=set)
    sign_at: float = 0.0
    marks: list[tuple[float, int]] = field(default_factory=list)
    knob_applied: int = 0
    loaders: list[tuple[int, int]] = field(default_factory=list)


class Signs:
    """All signs of one cell. Moments are `time.time()`; 0 means never."""

    def __init__(self, witness_dir: str, outputs: Iterable[tuple[int | None, str]] = ()) -> None:
        self.witness_dir = witness_dir
        self.by_pid: dict[int, Witnessed] = {}
        self.first_output_at = self.last_output_at = self.first_sign_at = 0.0
        self.printed: dict[int | None, set[int]] = {}
        self.output_at: dict[int | None, float] = {}
        self._outputs: dict[str, tuple[int | None, Growing]] = {}
        self._witnesses: dict[str, tuple[Witnessed, Growing, bytes]] = {}
        self._rings: dict[str, int] = {}
        self.any_collective = False
        self._listed_at = 0.0
        for rank, path in outputs:
            self.add_output(rank, path)

    def add_output(self, rank: int | None, path: str) -> None:
        """Watch one more file; `rank` is None for a stream that all ranks share."""
        if path not in self._outputs:
            self._outputs[path] = (rank, Growing(path))

    def read(self) -> None:
        """Take in what is new."""
        now = time.time()
        for rank, growing in self._outputs.values():
            block = growing.new()
            if block:
                self.first_output_at = self.first_output_at or now
                self.first_sign_at = self.first_sign_at or now
                self.last_output_at = self.output_at[rank] = now
                self._note_steps(rank, block)
        if now - self._listed_at >= 0.1:
            self._listed_at = now
            self._list()
        for name, (witnessed, growing, torn) in list(self._witnesses.items()):
            block = growing.new()
            if block:
                *lines, rest = (torn + block).split(b"\n")
                self._witnesses[name] = (witnessed, growing, rest)
                for line in lines:
                    self._hear(witnessed, line, now)

    def beat(self) -> bool:
        """Say whether a journal of collectives changed since the last call. Reads whole files,
        so call it about once a second.
        """
        changed = False
        for name in self._names():
            if name.endswith(".ring"):
                with (
                    contextlib.suppress(OSError),
                    open(os.path.join(self.witness_dir, name), "rb") as file,
                ):
                    content = file.read(512 * 1024)
                    mark = zlib.crc32(content)
                    # The first byte of a slot is 0 until a collective is written there
                    # (probes/_witness/_collectives.py).
                    self.any_collective = self.any_collective or content[:1] not in (b"", b"\0")
                    if mark != self._rings.get(name):
                        changed = changed or name in self._rings or content[:1] not in (b"", b"\0")
                        self._rings[name] = mark
        return changed

    def files(self) -> dict[int, str]:
        """The event files of the witnesses by pid."""
        return {witnessed.pid: growing.path for witnessed, growing, _ in self._witnesses.values()}

    def of_rank(self, rank: int) -> list[Witnessed]:
        return [each for each in self.by_pid.values() if each.rank == rank]

    def steps(self, rank: int, *, alone: bool) -> int:
        """How many steps rank `rank` is known to have made.

        Where its witness is silent or counts none, the step numbers in its own output count, and
        with `alone` those of a stream that all ranks share.
        """
        counted = max((each.steps for each in self.of_rank(rank)), default=0)
        printed = len(self.printed.get(rank, ()))
        if not counted and not printed and (alone or not self.of_rank(rank)):
            printed = len(self.printed.get(None, ()))
        return max(counted, printed)

    def sign_at(self, rank: int) -> float:
        """When rank `rank` last showed progress or printed something, 0 for never."""
        own = [each.sign_at for each in self.of_rank(rank)]
        return max([*own, self.output_at.get(rank, 0.0)], default=0.0)

    def last_at(self) -> float:
        return max([self.last_output_at, *(each.sign_at for each in self.by_pid.values())])

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.witness_dir)) if self.witness_dir else []
        except OSError:
            return []

    def _list(self) -> None:
        for name in self._names():
            match = _WITNESS.match(name)
            if match and match.group(3) == "jsonl" and name not in self._witnesses:
                rank, pid = (int(match.group(1)) if match.group(1) else None), int(match.group(2))
                witnessed = self.by_pid.setdefault(pid, Witnessed(rank, pid))
                # a process that sets its rank in Python goes on in a second file
                if witnessed.rank is None:
                    witnessed.rank = rank
                growing = Growing(os.path.join(self.witness_dir, name))
                self._witnesses[name] = (witnessed, growing, b"")

    def _hear(self, witnessed: Witnessed, line: bytes, now: float) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        name = str(event.get("name", event.get("event", "")))
        witnessed.event_names.add(name)
        witnessed.steps = max(witnessed.steps, _count(event.get("optimizer_steps")))
        witnessed.batches = max(witnessed.batches, _count(event.get("batches")))
        witnessed.backward_calls = max(
            witnessed.backward_calls, _count(event.get("backward_calls"))
        )
        if isinstance(event.get("torch_imported"), bool):
            witnessed.torch_imported = event["torch_imported"]
        if name == "step":
            at = event.get("at")
            if isinstance(at, float) and len(witnessed.marks) < MARKS_CAP:
                witnessed.marks.append((at, witnessed.steps))
        if name == "loader.made":
            witnessed.loaders.append(
                (_count(event.get("workers")), _count(event.get("batch_size")))
            )
        if name == "knob.applied":
            witnessed.knob_applied = max(witnessed.knob_applied, _count(event.get("count")))
        witnessed.loader_empty = witnessed.loader_empty or name == "loader.empty"
        witnessed.leaving = (
            witnessed.leaving
            or name in ("leave", "exit")
            or (name == "exception" and event.get("thread") in (None, "", "MainThread"))
        )
        if name == "exit":
            witnessed.exited = True
            witnessed.steps_uncounted = (
                "optimizer_steps" in event and event["optimizer_steps"] is None
            )
        if name not in ("start", "trainer"):  # the interpreter's start is no progress of the job
            witnessed.sign_at = now
            self.first_sign_at = self.first_sign_at or now

    def _note_steps(self, rank: int | None, block: bytes) -> None:
        numbers = self.printed.setdefault(rank, set())
        for match in _STEP.finditer(block):
            if len(numbers) >= NUMBERS_CAP:
                return
            numbers.add(int(match.group(1) or match.group(2)))


def _count(value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if whole else 0
