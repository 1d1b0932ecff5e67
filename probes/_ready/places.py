"""Small files of the kernel, below another root where a test gives one, and what the rest of the checks read from them."""

from __future__ import annotations

import glob
import os
from typing import List, Optional

CAP = 4 * 2**20


def read(root: str, path: str) -> str:
    """The text of a file, at most 4 MiB; "" where it cannot be read."""
    try:
        with open(below(root, path), "rb") as file:
            return file.read(CAP).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def line(root: str, path: str) -> str:
    """The first line, without blanks around it."""
    return (read(root, path).splitlines() or [""])[0].strip()


def number(root: str, path: str) -> Optional[int]:
    """A file that holds one number; None for anything else."""
    text = line(root, path)
    return int(text) if text.lstrip("-").isdigit() else None


def found(root: str, pattern: str) -> List[str]:
    """Paths that match, as they would be without the root."""
    cut = len(root.rstrip("/"))
    return sorted(path[cut:] for path in glob.glob(below(root, pattern)))


def below(root: str, path: str) -> str:
    return path if root == "/" else root.rstrip("/") + path


def exists(root: str, path: str) -> bool:
    return os.path.exists(below(root, path))


def chosen(root: str, path: str) -> str:
    """The word in brackets of a file such as `always [madvise] never`; the first word where there are none."""
    words = read(root, path).split()
    return next((word.strip("[]") for word in words if word.startswith("[")), words[0] if words else "")
