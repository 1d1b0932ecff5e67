"""What the user typed, checked: numbers, lists, and the command after the dashes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Literal

from trainprobe.config import LONGEST_S, MOST_RANKS
from trainprobe.errors import UsageError

MOST_RANKS_SHOWN = 100_000
MOST_STEPS, MOST_DRAWN, MOST_SEED = 100_000, 10_000, 999_999_999


def whole_number(option: str, given: str | None, most: int = MOST_RANKS, least: int = 1) -> int | None:
    """Return a number from `least` to `most`; raises UsageError for anything else."""
    if given is None:
        return None
    text = given.strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise UsageError(f"{option} needs a whole number from {least} to {most}, not {given[:40]!r}.")
    return int(text)


def device_given(given: str | None) -> Literal["", "cpu", "cuda"]:
    """Return `cpu` or `cuda`, empty where nothing was said; raises UsageError for anything else."""
    if given is None:
        return ""
    word = given.strip().lower()
    if word not in ("cpu", "cuda"):
        raise UsageError(f"--device needs cpu or cuda, not {given[:40]!r}.", "CUDA_VISIBLE_DEVICES chooses between GPUs.")
    return "cpu" if word == "cpu" else "cuda"


def seconds(option: str, given: str | None) -> float | None:
    """Return a positive number of seconds; raises UsageError for anything else."""
    if given is None:
        return None
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_S:
        raise UsageError(f"{option} needs seconds, more than 0 and at most {LONGEST_S}, not {given[:40]!r}.")
    return value


def nodes_given(given: str | None) -> tuple[str, ...]:
    """Return the hosts of `node[1-3],login1`, or `all` alone; raises UsageError for what no host can be called."""
    from trainprobe.targets.host_names import host_names

    if given is None:
        return ()
    return ("all",) if given.strip().lower() == "all" else host_names("--nodes", given)


def ranks_given(option: str, given: Sequence[str]) -> tuple[int, ...]:
    """Return ranks given as `3` or `0-3,7`, each once, in order; raises UsageError for anything else."""
    found: set[int] = set()
    for part in [part.strip() for one in given for part in one.split(",") if part.strip()]:
        match = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < MOST_RANKS_SHOWN:
            raise UsageError(f"{option} needs ranks, as 3 or 0-3,7, not {part[:40]!r}.")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def names(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of an option that takes `a,b` and may be repeated, each once, in order."""
    return tuple(dict.fromkeys(name.strip() for one in given for name in one.split(",") if name.strip()))


def form_of(words: Sequence[str], after_dashes: int) -> Literal["none", "launch", "command"]:
    """Say what stands after the dashes: nothing, a Python script that we launch, or the user's own command."""
    if len(words) > max(after_dashes, 0):
        stray = words[0]
        raise UsageError(f"{stray!r} is not an option.", f"A script or command comes after two dashes: trainprobe diagnose -- {stray}")
    if not words:
        return "none"
    first = words[0]
    if first.endswith((".py", ".pyw")) or _is_python_text(first):
        return "launch"
    return "command"


def _is_python_text(path: str) -> bool:
    """A file without the ending counts as a script when it cannot be run as it stands and its first line names Python."""
    if not os.path.isfile(path) or os.access(path, os.X_OK):
        return False
    try:
        with open(path, "rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first
