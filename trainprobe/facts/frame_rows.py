"""Frames as evidence writes them: rows with a file, a line and a function's name."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from trainprobe.model import fields
from trainprobe.stacks.frames import Frame

FRAMES_CAP = 1000


def frame_of(row: Mapping[str, Any]) -> Frame:
    """Read {name or function, file, line, text?, locals?}; what has another type is left empty."""
    name = row.get("name") if isinstance(row.get("name"), str) else row.get("function")
    file, text, line, local = row.get("file"), row.get("text"), row.get("line"), row.get("locals")
    place = (
        name[:400] if isinstance(name, str) else "",
        file[:4096] if isinstance(file, str) else "",
        (
            line
            if isinstance(line, int)
            and not isinstance(line, bool)
            and 0 <= line < fields.NUMBER_CAP
            else 0
        ),
        text[:400] if isinstance(text, str) else "",
    )
    if not isinstance(local, Mapping) or not local:
        return _same_frame(*place)
    return Frame(*place, {str(key): str(value)[:4096] for key, value in local.items()})


# Thousands of ranks stand in the same places: one object for each.
_same_frame = functools.lru_cache(maxsize=16384)(Frame)


def frames_of(rows: Iterable[Any], *, leaf_first: bool = False) -> tuple[Frame, ...]:
    """Return frames outermost first."""
    found = [frame_of(row) for row in rows if isinstance(row, Mapping)][:FRAMES_CAP]
    frames = tuple(reversed(found)) if leaf_first else tuple(found)
    # what takes no part in comparing frames is no part of the key either
    if any(frame.locals for frame in frames):
        return frames
    return _same_stack(frames, tuple(frame.text for frame in frames))


@functools.lru_cache(maxsize=4096)
def _same_stack(frames: tuple[Frame, ...], _: tuple[str, ...]) -> tuple[Frame, ...]:
    return frames
