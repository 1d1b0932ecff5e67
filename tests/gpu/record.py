"""Runs the jobs of this folder on a machine with a GPU and keeps what was seen.

python -m tests.gpu.record FOLDER [NAME ...]
"""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.gpu.jobs import JOBS, asked, right

TOGETHER = ("two-ranks-one-gpu", "label-out-of-range", "illegal-access", "fork-after-cuda")


def recorded(name: str, into: Path) -> str:
    """One line on one job: what was planned and what the tool said."""
    job, folder = JOBS[name], into / name
    folder.mkdir(parents=True)
    try:
        told = asked(job, folder)
    except Exception:  # noqa: BLE001 - one job that goes wrong must not end the others
        return f"{name}: {traceback.format_exc()}"
    report = told["report"]
    first = (report.get("causes") or [{}])[0]
    return (
        f"{'right' if right(job, report) else 'WRONG'} {name}: {report.get('verdict')} {first.get('id')}"
        f" {first.get('ranks')} {first.get('confidence')} in {told['took_s']:.1f} s,"
        f" exit {told['code']}"
    )


def main() -> None:
    into, names = Path(sys.argv[1]), sys.argv[2:] or list(JOBS)
    with ThreadPoolExecutor(4) as pool:
        for line in pool.map(
            lambda name: recorded(name, into), [n for n in names if n in TOGETHER]
        ):
            print(line, flush=True)
    for name in names:
        if name not in TOGETHER:
            print(recorded(name, into), flush=True)


if __name__ == "__main__":
    main()
