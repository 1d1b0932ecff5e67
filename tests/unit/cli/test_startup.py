"""The price of `trainprobe --help`: at most 1.6 times a bare `import typer`, and no torch."""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 9
BUDGET = 1.6


def took_s(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=60)
    return time.perf_counter() - began


def test_help_costs_little_more_than_typer() -> None:
    """Both in turn, and the fastest of each: other work on the machine only ever adds time."""
    rounds = [(took_s("-c", "import typer"), took_s("-m", "trainprobe", "--help")) for _ in range(ROUNDS)]
    typer_s, help_s = (min(column) for column in zip(*rounds, strict=True))
    assert help_s <= BUDGET * typer_s, f"--help took {help_s:.3f} s, import typer {typer_s:.3f} s"
