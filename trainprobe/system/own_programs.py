"""Where the programs lie that travel with the tool."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def folder_of_probes() -> str:
    """Return where our own probes lie: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_probes"
    return str(shipped if shipped.is_dir() else package.parent / "probes")
