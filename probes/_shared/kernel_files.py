"""Small files of the kernel, below another root in tests."""

from __future__ import annotations

import glob
import os
from typing import List, Optional, Tuple

CAP = 4 * 2**20
LOG_CAP = 2**23
NVIDIA = "0x10de"


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
    return int(text) if text.lstrip("-").isdecimal() else None


def matching(root: str, pattern: str) -> List[str]:
    """Paths that match, as they would be without the root."""
    cut = len(root.rstrip("/"))
    return sorted(path[cut:] for path in glob.glob(below(root, pattern)))


def below(root: str, path: str) -> str:
    return path if root == "/" else root.rstrip("/") + path


def exists(root: str, path: str) -> bool:
    return os.path.exists(below(root, path))


def chosen(root: str, path: str) -> str:
    """The bracketed word of a file such as `always [madvise] never`, else the first."""
    choices = read(root, path).split()
    return next(
        (choice.strip("[]") for choice in choices if choice.startswith("[")),
        choices[0] if choices else "",
    )


def nvidia_gpus(root: str) -> List[str]:
    """Sysfs paths of NVIDIA's display and 3D controllers."""
    return [
        path
        for path in matching(root, "/sys/bus/pci/devices/*")
        if line(root, f"{path}/vendor") == NVIDIA
        and line(root, f"{path}/class")[:6] in ("0x0300", "0x0302")
    ]


def kernel_log(root: str) -> Optional[List[Tuple[float, str]]]:
    """(seconds since boot, line) of /dev/kmsg or, below another root, of a file; None if denied."""
    text = b""
    try:
        file = os.open(below(root, "/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        while len(text) < LOG_CAP:
            try:
                piece = os.read(file, 8192)
            except BrokenPipeError:  # a record was overwritten meanwhile; the next one follows
                continue
            if not piece:
                break
            text += piece
    except OSError:
        pass  # all has been read (EAGAIN), or reading is forbidden after opening
    finally:
        os.close(file)
    rows = [line.partition(";") for line in text.decode("utf-8", "replace").splitlines()]
    stamps = [head.split(",")[2] if head.count(",") >= 2 else "" for head, _, _ in rows]
    return (
        [
            (int(stamp) / 1e6 if stamp.isdecimal() else 0.0, line or head)
            for stamp, (head, _, line) in zip(stamps, rows)
        ]
        if text
        else None
    )
