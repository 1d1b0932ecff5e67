"""Sizes that the user typed: lists of numbers, numbers with k, M or G, and what the real run is planned to have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trainprobe.config import MOST_RANKS
from trainprobe.errors import UsageError

MOST_ROWS = 10**15
TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
PLANNED = ("rows", "ranks", "workers")


def amount(option: str, given: str, *, least: int = 1, most: int = MOST_RANKS) -> int:
    """Return a whole number, written as `9988`, `14.8M` or `200k`; raises UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([kKmMgGbB]?)", given.strip())
    value = round(float(match[1]) * TIMES[match[2].lower()]) if match else -1
    if not least <= value <= most:
        raise UsageError(f"{option} needs whole numbers from {least} to {most}, as 9988, 200k or 14.8M, not {given[:40]!r}.")
    return value


def sizes(option: str, given: str | None, *, least: int = 1, most: int = MOST_RANKS) -> tuple[int, ...]:
    """Return the numbers of `2,100,1000`, each once, smallest first; empty where the option was not given."""
    if given is None:
        return ()
    found = sorted({amount(option, part, least=least, most=most) for part in given.split(",") if part.strip()})
    if not found:
        raise UsageError(f"{option} needs numbers, as 2,100,1000, not {given[:40]!r}.")
    return tuple(found)


def knobs(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (name, value) of each `name=value`; raises UsageError for what has no name."""
    found = []
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not re.fullmatch(r"-{0,2}[A-Za-z_][A-Za-z0-9_.-]{0,99}", name.strip()):
            raise UsageError(f"--knob needs name=value, as num_workers=0, not {one[:60]!r}.")
        found.append((name.strip().lstrip("-"), value))
    return tuple(dict.fromkeys(found))


def planned_sizes(given: str | None) -> Mapping[str, int]:
    """Return what `rows=14.8M,ranks=8,workers=4` says, by name; empty where nothing was given."""
    found: dict[str, int] = {}
    for part in (given or "").split(","):
        name, equals, value = part.strip().partition("=")
        if not part.strip():
            continue
        if not equals or name not in PLANNED:
            raise UsageError(f"--planned knows {', '.join(f'{one}=N' for one in PLANNED)}, not {part[:40]!r}.")
        found[name] = amount(f"--planned {name}=", value, least=0 if name == "workers" else 1, most=MOST_ROWS if name == "rows" else 10**6)
    return found
