"""The values of options, checked: numbers, sizes, lists, and the command after the dashes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from trainprobe.config import LONGEST_S, MOST_RANKS
from trainprobe.errors import UsageError

MOST_RANKS_SHOWN = 100_000
MOST_STEPS, MOST_DRAWN, MOST_SEED = 100_000, 10_000, 999_999_999
MOST_ROWS = 10**15
TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
PLANNED = ("rows", "ranks", "workers")


def whole_number(
    option: str, typed: str | None, most: int = MOST_RANKS, least: int = 1
) -> int | None:
    """Return a number from `least` to `most`; raises UsageError for anything else."""
    if typed is None:
        return None
    text = typed.strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise UsageError(
            f"{option} needs a whole number from {least} to {most}, not {typed[:40]!r}."
        )
    return int(text)


def device_name(typed: str | None) -> Literal["", "cpu", "cuda"]:
    """Return `cpu` or `cuda`, empty without the option; raises UsageError for anything else."""
    if typed is None:
        return ""
    word = typed.strip().lower()
    if word not in ("cpu", "cuda"):
        raise UsageError(
            f"--device needs cpu or cuda, not {typed[:40]!r}.",
            "CUDA_VISIBLE_DEVICES chooses between GPUs.",
        )
    return "cpu" if word == "cpu" else "cuda"


def seconds(option: str, typed: str | None) -> float | None:
    """Return a positive number of seconds; raises UsageError for anything else."""
    if typed is None:
        return None
    try:
        value = float(typed)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_S:
        raise UsageError(
            f"{option} needs seconds, more than 0 and at most {LONGEST_S}, not {typed[:40]!r}."
        )
    return value


def node_list(typed: str | None) -> tuple[str, ...]:
    """Return the hosts of `node[1-3],login1`, or `all` alone; raises UsageError for what no host
    can be called.
    """
    from trainprobe.targets.host_names import host_names

    if typed is None:
        return ()
    return ("all",) if typed.strip().lower() == "all" else host_names("--nodes", typed)


def rank_list(option: str, typed: Sequence[str]) -> tuple[int, ...]:
    """Return ranks typed as `3` or `0-3,7`, each once, in order; raises UsageError for anything
    else.
    """
    found: set[int] = set()
    for part in names(typed):
        match = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < MOST_RANKS_SHOWN:
            raise UsageError(f"{option} needs ranks, as 3 or 0-3,7, not {part[:40]!r}.")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def names(typed: Sequence[str]) -> tuple[str, ...]:
    """Return the names of an option that takes `a,b` and may be repeated, each once, in order."""
    parts = (part.strip() for text in typed for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def amount(option: str, typed: str, *, least: int = 1, most: int = MOST_RANKS) -> int:
    """Return a whole number, written as `9988`, `14.8M` or `200k`; raises UsageError for
    anything else.
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([kKmMgGbB]?)", typed.strip())
    value = round(float(match[1]) * TIMES[match[2].lower()]) if match else -1
    if not least <= value <= most:
        raise UsageError(
            f"{option} needs whole numbers from {least} to {most}, as 9988, 200k or 14.8M, not"
            f" {typed[:40]!r}."
        )
    return value


def sizes(
    option: str, typed: str | None, *, least: int = 1, most: int = MOST_RANKS
) -> tuple[int, ...]:
    """Return the numbers of `2,100,1000`, each once, smallest first; empty where the option was
    not typed.
    """
    if typed is None:
        return ()
    found = sorted(
        {amount(option, part, least=least, most=most) for part in typed.split(",") if part.strip()}
    )
    if not found:
        raise UsageError(f"{option} needs numbers, as 2,100,1000, not {typed[:40]!r}.")
    return tuple(found)


def knobs(typed: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (name, value) of each `name=value`; raises UsageError for what has no name."""
    found = []
    for knob in typed:
        name, equals, value = knob.partition("=")
        if not equals or not re.fullmatch(r"-{0,2}[A-Za-z_][A-Za-z0-9_.-]{0,99}", name.strip()):
            raise UsageError(f"--knob needs name=value, as num_workers=0, not {knob[:60]!r}.")
        found.append((name.strip().lstrip("-"), value))
    return tuple(dict.fromkeys(found))


def planned_sizes(typed: str | None) -> Mapping[str, int]:
    """Return the sizes of `rows=14.8M,ranks=8,workers=4` by name; empty without the option."""
    found: dict[str, int] = {}
    for part in (typed or "").split(","):
        name, equals, value = part.strip().partition("=")
        if not part.strip():
            continue
        if not equals or name not in PLANNED:
            known = ", ".join(f"{size}=N" for size in PLANNED)
            raise UsageError(f"--planned knows {known}, not {part[:40]!r}.")
        least, most = 0 if name == "workers" else 1, MOST_ROWS if name == "rows" else 10**6
        found[name] = amount(f"--planned {name}=", value, least=least, most=most)
    return found


def form_of(words: Sequence[str], after_dashes: int) -> Literal["none", "launch", "command"]:
    """Classify the words after the dashes: nothing, a Python script that we launch, or the user's
    own command.
    """
    if len(words) > max(after_dashes, 0):
        stray = words[0]
        raise UsageError(
            f"{stray!r} is not an option.",
            f"A script or command comes after two dashes: trainprobe diagnose -- {stray}",
        )
    if not words:
        return "none"
    first = words[0]
    if first.endswith((".py", ".pyw")) or _is_python_text(first):
        return "launch"
    return "command"


def _is_python_text(path: str) -> bool:
    """A file without the ending counts as a script when it is not executable and its first line
    names Python.
    """
    if not os.path.isfile(path) or os.access(path, os.X_OK):
        return False
    try:
        with open(path, "rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first
