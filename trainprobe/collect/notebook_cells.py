"""Cells of notebooks by their number. ipykernel calls the code of a cell
`/tmp/ipykernel_PID/HASH.py`, a file that is not there; `%load_ext trainprobe` leaves the cell's
source as `cell N` beside it, and HASH.py as a link to that.
"""

from __future__ import annotations

import os
import re

_CELL = re.compile(r"/ipykernel_\d+/[^/]+\.py$")
_NAMED = re.compile(r"cell \d{1,6}")


def cell_file(file: str) -> str:
    """Return the file of a cell that has left its name, such as `/tmp/ipykernel_7/cell 3`; any
    other file unchanged.
    """
    if not _CELL.search(file):
        return file
    try:
        name = os.readlink(file)
    except OSError:
        return file
    return os.path.join(os.path.dirname(file), name) if _NAMED.fullmatch(name) else file
