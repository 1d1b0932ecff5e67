"""Frames as evidence writes them: rows with a file, a line and a function's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainprobe.model import fields
from trainprobe.stacks.frames import Frame

FRAMES_CAP = 1000


def frame_of(row: Mapping[str, Any]) -> Frame:
    """Read {name or function, file, line, text?, locals?}; what has another type is left empty."""
    name = row.get("name") if isinstance(row.get("name"), str) else row.get("function")
    file, text, line, local = row.get("file"), row.get("text"), row.get("line"), row.get("locals")
    return Frame(
        name=name[:400] if isinstance(name, str) else "",
        file=file[:4096] if isinstance(file, str) else "",
        line=(
            line
            if isinstance(line, int)
            and not isinstance(line, bool)
            and 0 <= line < fields.NUMBER_CAP
            else 0
        ),
        text=text[:400] if isinstance(text, str) else "",
        locals=(
            {str(key): str(value)[:4096] for key, value in local.items()}
            if isinstance(local, Mapping)
            else {}
        ),
    )


def frames_of(rows: Iterable[Any], *, leaf_first: bool = False) -> tuple[Frame, ...]:
    """Return frames outermost first."""
    found = [frame_of(row) for row in rows if isinstance(row, Mapping)][:FRAMES_CAP]
    return tuple(reversed(found)) if leaf_first else tuple(found)
