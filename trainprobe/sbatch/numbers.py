"""Numbers as SLURM writes them: times, sizes, counts of nodes, generic resources, lists of
hosts.
"""

from __future__ import annotations

import re

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
_SIZE = re.compile(r"(\d{1,12})(?:\.\d+)?([KMGT]?)(?:B|iB)?", re.IGNORECASE)
_BRACKET = re.compile(r"([^\[\],]*)\[([0-9,\-]+)\]([^\[\],]*)|([^\[\],]+)")
MOST_HOSTS = 20_000
MOST_GRES = 4_000  # characters; a node with eight GPUs has some fifty


def minutes(text: str) -> float | None:
    """`90`, `90:30`, `1:30:00`, `2-12`, `2-12:30`, `2-12:30:15` and `UNLIMITED` (infinity) in
    minutes; None where sbatch would refuse it.
    """
    text = text.strip()
    if text.upper() in ("UNLIMITED", "INFINITE", "-1"):
        return float("inf")
    found = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,7})(?::(\d{1,5}))?(?::(\d{1,5}))?", text)
    if not found:
        return None
    days, first, second, third = (int(part) if part else 0 for part in found.groups())
    if found[1]:
        return days * 1440 + first * 60 + second + third / 60
    if found[4]:
        return first * 60 + second + third / 60
    return first + second / 60


def megabytes(text: str) -> float | None:
    """`4G`, `512M`, `4000` (megabytes) as megabytes; None where it is not a size."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].upper() or "M"] if found else None


def whole(text: str) -> int | None:
    text = text.strip()  # int() strips less
    return int(text) if re.fullmatch(r"\d{1,9}", text) else None


def node_range(text: str) -> tuple[int, int] | None:
    """`4`, `2-4`, `2k` as the least and the most nodes."""
    found = re.fullmatch(r"(\d{1,7})(k?)(?:-(\d{1,7})(k?))?", text.strip().lower())
    if not found:
        return None
    least = int(found[1]) * (1024 if found[2] else 1)
    most = int(found[3]) * (1024 if found[4] else 1) if found[3] else least
    return least, most


def gpu_count(text: str) -> int | None:
    """`4`, `a100:4`, `a100:2,h100:2` as a number of GPUs."""
    total = 0
    for part in text.split(","):
        number = whole(part.rpartition(":")[2].partition("(")[0])
        if number is None:
            return None
        total += number
    return total


def gres_gpus(text: str) -> int | None:
    """The GPUs of a --gres value or of scontrol's Gres field, such as `gpu:a100:4(S:0-1),ssd:1`;
    a bare `gpu` counts as 1, None where the text names no GPU.
    """
    counts = []
    for part in _outside_brackets(text.removeprefix("gres/").removeprefix("gres:")):
        entry = part.partition("(")[0].replace("=", ":").removeprefix("gres/").split(":")
        if entry[0].strip().lower() in ("gpu", "gpus"):
            count = whole(entry[-1])
            counts.append(1 if count is None else count)
    return sum(counts) if counts else None


def _outside_brackets(text: str) -> list[str]:
    """Split at commas outside (…): `gpu:4(S:0,1),ssd:1` has two parts."""
    parts, start, depth = [], 0, 0
    for at, char in enumerate(text[:MOST_GRES]):
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
        depth = max(0, depth + (char == "(") - (char == ")"))
    return [*parts, text[start:MOST_GRES]]


def hosts(text: str) -> tuple[str, ...]:
    """`node[1-3,07],login1` as names, at most MOST_HOSTS of them. Unreadable parts are left out."""
    found: list[str] = []
    for before, inside, behind, plain in _BRACKET.findall(text[:20_000]):
        if plain:
            found.append(plain.strip())
            continue
        for part in inside.split(","):
            first, _, last = part.partition("-")
            low, high = whole(first), whole(last or first)
            if low is None or high is None or not 0 <= high - low <= MOST_HOSTS:
                continue
            if len(found) > MOST_HOSTS:
                break
            found += [
                f"{before.strip()}{number:0{len(first)}d}{behind.strip()}"
                for number in range(low, high + 1)
            ]
    return tuple(found[:MOST_HOSTS])


def counted(count: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
