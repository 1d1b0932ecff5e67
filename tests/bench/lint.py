"""Lines that lint reads and judges in a second of processor time, without kept answers; fails under
its limit.

python tests/bench/lint.py [FOLDER ...]

Without folders, those of the installed lightning and transformers. Each is read in a process of its
own, as on the command line.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST_LINES_PER_S = 20_000
PACKAGES = ("lightning", "transformers")


def installed() -> list[str]:
    """The folders of the packages that are here; none is imported."""
    found = (importlib.util.find_spec(name) for name in PACKAGES)
    return [str(spec.submodule_search_locations[0]) for spec in found if spec is not None]  # type: ignore[index]


def spent_s(folder: str) -> float:
    """The processor time of one look at a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    asked = [sys.executable, "-m", "trainprobe", "lint", "--no-cache", "--quiet", folder]
    subprocess.run(
        asked,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folders", nargs="*", default=installed())
    slow = 0
    for folder in asked.parse_args().folders:
        lines = sum(path.read_bytes().count(b"\n") for path in Path(folder).rglob("*.py"))
        took_s = spent_s(folder)
        per_s = lines / took_s
        slow += per_s < LEAST_LINES_PER_S
        print(
            f"{folder}: {lines:,} lines in {took_s:.1f} s of processor time, {per_s:,.0f} a second"
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
