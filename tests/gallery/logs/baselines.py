"""Two simple rules beside the tool: the last telling line, and the first line that looks like an
error, each read alone.
"""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from trainprobe.signatures import match_line

EXCEPTION = re.compile(
    r"(?:^|[\s:])[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)(?:: |$)"
)
ERROR_LIKE = re.compile(
    r"\b(?:error|fatal|fail(?:ed|ure)?|killed|abort(?:ed)?|exception|traceback|segmentation"
    r" fault|out of memory|timed? ?out)\b|Error\b",
    re.IGNORECASE,
)


def lines_of(folder: Path) -> list[str]:
    """All lines of all files of a case, file after file in the order of their names."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "given" not in path.parts:
            found += _text(path).replace("\r", "\n").splitlines()
    return [line for line in found if line.strip()]


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".xz":
        data = lzma.decompress(data)
    elif path.suffix == ".zst":
        data = subprocess.run(["zstd", "-dc", str(path)], capture_output=True, check=True).stdout
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")


def last_line(folder: Path, explain: Callable[[list[str]], str]) -> str:
    """The cause that the tool names for the last line that any signature knows or that ends a
    traceback.
    """
    for line in reversed(lines_of(folder)):
        if match_line(line[:4000]) or (EXCEPTION.search(line[:400]) and not line.startswith(" ")):
            return _alone(line, explain)
    return "none"


def first_error(folder: Path, explain: Callable[[list[str]], str]) -> str:
    """The cause that the tool names for the first line that looks like an error (`Traceback`
    stands for the line that ends it).
    """
    lines = lines_of(folder)
    for place, line in enumerate(lines):
        if ERROR_LIKE.search(line[:4000]):
            end = (
                next(
                    (
                        other
                        for other in lines[place : place + 200]
                        if EXCEPTION.search(other[:400])
                    ),
                    line,
                )
                if "Traceback (most" in line
                else line
            )
            return _alone(end, explain)
    return "none"


def _alone(line: str, explain: Callable[[list[str]], str]) -> str:
    with tempfile.TemporaryDirectory(prefix="one-line-") as folder:
        path = Path(folder) / "lines.txt"
        path.write_text(line + "\n", encoding="utf-8")
        return explain([str(path)])
