"""Evaluation report: tables per slice, rendered to markdown."""
from concurrent.futures import ThreadPoolExecutor

from .slices import NAMES, load_slice

PRECISION = 3

with ThreadPoolExecutor(max_workers=3) as pool:
    SLICES = dict(zip(NAMES, pool.map(load_slice, NAMES)))


def render(rows):
    lines = ["| slice | mae | n |", "| --- | --- | --- |"]
    for name, mae, n in rows:
        lines.append(f"| {name} | {mae:.{PRECISION}f} | {n} |")
    return "\n".join(lines)
