"""Where the programs lie that travel with the tool."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def folder_of_probes() -> str:
    """Return where our own probes lie: inside the wheel, or beside the package in a checkout."""
    return _folder_of("probes")


@cache
def folder_of_demos() -> str:
    """Return where the jobs of `trainprobe demo` lie: as the probes do."""
    return _folder_of("demos")


def _folder_of(name: str) -> str:
    package = Path(__file__).resolve().parent.parent
    shipped = package / f"_{name}"
    return str(shipped if shipped.is_dir() else package.parent / name)
