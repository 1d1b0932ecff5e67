"""Which looks of a long watch stay in the case: the last ones, and those that found a change. What
was there before the watch stays whatever comes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from trainprobe.case import Case
    from trainprobe.collect.members import Member
    from trainprobe.model.evidence import Evidence
    from trainprobe.model.subjects import Subject

LAST_LOOKS = 6
MOST_CHANGES = 32
AT_A_TIME = 16  # looks that go together: each time the evidence on the disk is written anew
OF_A_LOOK = frozenset({"process", "stacks.python", "stacks.samples", "source"})
ENDED_OR_STOPPED = frozenset("TtZX")
Process = tuple[Any, ...]


@dataclass(frozen=True)
class Look:
    """One look of the watch: its number, its records, and whether it was unlike the one before."""

    number: int
    ids: tuple[str, ...]
    changed: bool


class KeptLooks:
    """The looks of one watch. Hours of it leave as much as some minutes.

    Of many changes every second one goes, again and again: the further back, the fewer are left.
    The look at which a process came to where its main thread stands now is never one of them.
    """

    def __init__(self, case: Case, cell: str) -> None:
        self.case, self.cell = case, cell
        self.looks = self.alike = self.thinned = 0
        self._seen = _last_number(case)
        self._stood: dict[Process, tuple[int, int]] = {}
        self._came: dict[Process, int] = {}
        self._has_changed(0, [record for record in case.evidence if record.cell == cell])
        self._changes: list[Look] = []
        self._last: deque[Look] = deque()
        self._leaving: list[str] = []
        self._waiting = 0
        self._told = ""

    def add(self, number: int) -> None:
        """Take what came into the case since the last call as look `number`."""
        records = [
            record
            for record in self.case.evidence
            if _number(record) > self._seen and record.cell == self.cell and _is_passing(record)
        ]
        self._seen = max([self._seen, *map(_number, records)])
        ids = tuple(record.id for record in records)
        self.looks += 1
        self._last.append(Look(number, ids, self._has_changed(number, records)))
        if len(self._last) > LAST_LOOKS:
            self._settle(self._last.popleft())
        if self._waiting >= AT_A_TIME:
            self.forget()

    def lose(self, members: Collection[Member]) -> None:
        """Forget where these stood: they have ended."""
        for member in members:
            self._stood.pop(_process(member.subject), None)
            self._came.pop(_process(member.subject), None)

    def forget(self) -> None:
        """Have the case forget the looks that need not stay, and say in it how many there were."""
        if not self._leaving:
            return
        told = self.case.add(
            "watch",
            cell=self.cell,
            source="trainprobe",
            data={"looks": self.looks, "left_out_alike": self.alike, "left_out": self.thinned},
        )
        self.case.forget([*self._leaving, *([self._told] if self._told else [])])
        self._told, self._leaving, self._waiting = told.id, [], 0

    def _settle(self, look: Look) -> None:
        """Keep it as a change, or let it go."""
        if not look.changed:
            self._leave(look)
            self.alike += 1
            return
        self._changes.append(look)
        held = set(self._came.values())
        free = [one for one in self._changes if one.number not in held]
        if len(free) > MOST_CHANGES:
            going = set(free[1::2])
            for one in going:
                self._leave(one)
            self.thinned += len(going)
            self._changes = [one for one in self._changes if one not in going]

    def _leave(self, look: Look) -> None:
        self._leaving += look.ids
        self._waiting += 1

    def _has_changed(self, number: int, records: list[Evidence]) -> bool:
        states = {
            _process(record.subject): str(record.data.get("state") or "")
            for record in records
            if record.kind == "process"
        }
        changed = False
        for record in records:
            if record.kind != "stacks.python":
                continue
            process = _process(record.subject)
            state = states.get(process, "")
            ended = state if state in ENDED_OR_STOPPED else ""
            rows = [row for row in record.data.get("threads") or () if isinstance(row, dict)]
            places = [_place(row) for row in rows]
            stands = hash((record.outcome, ended, *places)), hash((ended, *places[:1]))
            stood = self._stood.get(process)
            self._stood[process] = stands
            changed |= stood is None or stood != stands
            if stood is None or stood[1] != stands[1]:
                self._came[process] = number
        return changed


def _process(subject: Subject) -> Process:
    return subject.pid, subject.started_ticks


def _place(thread: Mapping[str, Any]) -> tuple[Any, ...]:
    frames = [frame for frame in thread.get("frames") or () if isinstance(frame, dict)]
    return (
        thread.get("os_thread_id"),
        *((frame.get("name"), frame.get("file"), frame.get("line")) for frame in frames),
    )


def _is_passing(record: Evidence) -> bool:
    """Whether later looks bring its like again; source that could be read is read once."""
    return record.kind in OF_A_LOOK and not (record.kind == "source" and record.data.get("sites"))


def _number(record: Evidence) -> int:
    return int(record.id[1:])


def _last_number(case: Case) -> int:
    return max(map(_number, case.evidence), default=0)
