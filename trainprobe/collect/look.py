"""One look at a running cell: every process of it, every stack, the file locks, and the source around what the stacks show."""

from __future__ import annotations

import dataclasses
import time
from typing import List, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect import procfs
from trainprobe.collect.locks import look_at_locks
from trainprobe.collect.members import Member
from trainprobe.collect.processes import look_at_processes
from trainprobe.collect.source import look_at_source, sites_in_stacks
from trainprobe.collect.stacks import look_at_stacks
from trainprobe.model.evidence import Evidence

SPACING_S = 0.5
THIRD_LOOK_AFTER_S = 2.0


def look(case: Case, cell: str, members: Sequence[Member], number: int, *, cwd: str = "", deadline_s: float = 8.0) -> Tuple[Evidence, ...]:
    """Look once. The states of all processes come first: they cost microseconds, and the stacks pause what they look at.

    `number` is 1, 2 or 3; `cwd` is the job's folder, for source files named relative to it. Whatever is not done after
    `deadline_s` is left out as timed out.
    """
    ends = time.monotonic() + deadline_s
    known = [_with_start(member) for member in members]
    found: List[Evidence] = list(look_at_processes(case, cell, known, number, deadline_s=min(2.0, deadline_s / 4)))
    # A launcher that is no rank is looked at as well: torchrun waits in Python, and its stack says for what.
    stacks = look_at_stacks(case, cell, known, number, deadline_s=max(0.1, (ends - time.monotonic()) * 0.8))
    found += stacks
    found.append(look_at_locks(case, cell, known, deadline_s=min(1.0, max(0.1, ends - time.monotonic()))))
    found += look_at_source(case, cell, sites_in_stacks(stacks), cwd=cwd, deadline_s=max(0.1, ends - time.monotonic()))
    return tuple(found)


def look_twice(
    case: Case, cell: str, members: Sequence[Member], *, cwd: str = "", spacing_s: float = SPACING_S, deadline_s: float = 16.0
) -> Tuple[Evidence, ...]:
    """Looks 1 and 2, whose beginnings are `spacing_s` apart: what stands at the same place in both has made no progress."""
    began = time.monotonic()
    known = [_with_start(member) for member in members]
    first = look(case, cell, known, 1, cwd=cwd, deadline_s=deadline_s / 2)
    time.sleep(max(0.0, spacing_s - (time.monotonic() - began)))
    return first + look(case, cell, known, 2, cwd=cwd, deadline_s=deadline_s / 2)


def look_again(case: Case, cell: str, members: Sequence[Member], *, cwd: str = "", deadline_s: float = 8.0) -> Tuple[Evidence, ...]:
    """Look 3, two seconds later, for a suspect that two looks leave undecided."""
    time.sleep(THIRD_LOOK_AFTER_S)
    return look(case, cell, members, 3, cwd=cwd, deadline_s=deadline_s)


def _with_start(member: Member) -> Member:
    """Pin the process by its start, so that a later step of the look cannot mistake a new one with the same pid for it."""
    if member.started_ticks is not None:
        return member
    now: Optional[procfs.Stat] = procfs.stat(member.pid)
    return member if now is None else dataclasses.replace(member, started_ticks=now.started_ticks)
