"""A suite of the stress test over several small models in one process: what it held, by model."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(__file__).resolve().parent / "data" / "stressed_models.py.txt"


@dataclass(frozen=True)
class Wrote:
    """The rows of one model's suite."""

    rows: Sequence[Mapping[str, Any]]

    @property
    def findings(self) -> list[tuple[str, str, str]]:
        """Name, what and where of all that was beyond its threshold."""
        return [
            (row["name"], row["what"], row["where"])
            for row in self.rows
            if row["row"] == "held" and not row["fine"]
        ]

    def finding(self) -> Mapping[str, Any]:
        """The only one."""
        (found,) = (row for row in self.rows if row["row"] == "held" and not row["fine"])
        return found

    def says(self, kind: str) -> str:
        return " ".join(str(row["says"]) for row in self.rows if row["row"] == kind)


def wrote(
    suite: str, folder: Path, *names: str, fuzz: int = 12, seed: int = 0, source: str | None = None
) -> dict[str, Wrote]:
    """Run `suite` over the models of these names (NAME or NAME:SAMPLE), out of `source` or the
    small models here. Test processes side by side share one run.
    """
    file = folder / "stressed_models.py"
    file.write_text(source or MODELS.read_text())
    key = json.dumps([suite, names, fuzz, seed, file.read_text()])
    shared = folder.parent.parent if "PYTEST_XDIST_WORKER" in os.environ else folder.parent
    cache = shared / f"stress-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    with cache.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cache.exists():
            cache.write_text(_output_of(suite, file, names, fuzz, seed))
    return {name: Wrote(rows) for name, rows in json.loads(cache.read_text()).items()}


def _output_of(suite: str, file: Path, names: Sequence[str], fuzz: int, seed: int) -> str:
    program = [
        sys.executable,
        str(ROOT / "tests" / "programs" / "stress_suite.py"),
        suite,
        str(file),
        str(fuzz),
        str(seed),
        *names,
    ]
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("TRAINPROBE_")
    }
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**variables, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]
