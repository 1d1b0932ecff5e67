"""A process of a job whose rank nobody knows: it is judged under a number that no rank has, and
reported by its pid.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Optional, TypeVar

T = TypeVar("T")
FIRST = 10**15
STEP = 2  # so that no two of them follow each other, and none is folded into a range
_END = 10**16
_NUMBER = r"\d{1,7}(?:-\d{1,7})?|\d{16}"
_LIST = re.compile(rf"\b([Rr])anks? ((?:{_NUMBER})(?:(?:,|, | and )(?:{_NUMBER}))*)(?!\d)")
_ALONE = re.compile(r"(?<!\d)\d{16}(?!\d)")


def number_of(pid: int) -> int:
    """The number under which the process `pid` (with its host, where there are several) is
    judged.
    """
    return FIRST + STEP * int(pid)


def pid_of(rank: Optional[int]) -> Optional[int]:
    """The plain pid behind such a number; None for a rank."""
    return (
        ((rank - FIRST) // STEP) & 0xFFFFFFFF if rank is not None and FIRST <= rank < _END else None
    )


def by_pid(value: T) -> T:
    """Return `value`, made of dataclasses, tuples and texts, with pids in place of such numbers
    in its texts, and without them in its sets of ranks.
    """
    found: T = _by_pid(value)
    return found


def _by_pid(value: Any) -> Any:
    if isinstance(value, str):
        return _ALONE.sub(_alone, _LIST.sub(_listed, value)) if "10000" in value else value
    if isinstance(value, (tuple, list)):
        return type(value)(
            _by_pid(item)
            for item in value
            if not (isinstance(item, int) and pid_of(item) is not None)
        )
    if isinstance(value, dict):
        return {key: _by_pid(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value,
            **{
                field.name: _by_pid(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if field.init
            },
        )
    return None if isinstance(value, int) and pid_of(value) is not None else value


def _listed(match: re.Match[str]) -> str:
    """`ranks 0 and 1000000000034668` becomes `rank 0 and process 17334`."""
    items = re.split(r",\s?| and ", match.group(2))
    pids = [
        str(pid)
        for item in items
        if item.isdecimal()
        for pid in [pid_of(int(item))]
        if pid is not None
    ]
    if not pids:
        return match.group(0)
    ranks = [item for item in items if len(item) < len(str(FIRST))]
    several = len(ranks) > 1 or any("-" in item for item in ranks)
    parts = [f"rank{'s' if several else ''} {', '.join(ranks)}"] if ranks else []
    parts.append(f"process{'es' if len(pids) > 1 else ''} {', '.join(pids)}")
    said = " and ".join(parts)
    return said[:1].upper() + said[1:] if match.group(1) == "R" else said


def _alone(match: re.Match[str]) -> str:
    pid = pid_of(int(match.group(0)))
    return match.group(0) if pid is None else f"pid {pid}"
