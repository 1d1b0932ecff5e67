"""The programs `*_child.py` of this folder: they ask what may hang, and are killed when it does."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List

from trainprobe.system.run import Ran, run

HERE = os.path.dirname(os.path.abspath(__file__))


def run_child(
    name: str,
    *words: str,
    timeout_s: float,
    input: bytes = b"",  # noqa: A002 - as in subprocess
    site: bool = False,
    cwd: str = "/",
    kill_s: float = 0.1,
    output_cap_bytes: int = 2**20,
) -> Ran:
    """Run `collect/<name>.py` with this interpreter, without the job's PYTHON* variables.

    `site`: with the installed packages.
    """
    flags = ["-E", "-B"] if site else ["-E", "-S", "-B"]
    return run(
        [sys.executable, *flags, os.path.join(HERE, f"{name}.py"), *words],
        timeout_s=timeout_s,
        cwd=cwd,
        input=input,
        kill_s=kill_s,
        output_cap_bytes=output_cap_bytes,
    )


def json_lines(output: bytes) -> List[Dict[str, Any]]:
    """Return the objects of a child's output, without a line that was cut."""
    rows = []
    for line in output.splitlines():
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return [row for row in rows if isinstance(row, dict)]
