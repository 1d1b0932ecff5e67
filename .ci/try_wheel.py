"""Install what `make wheel` has built into empty environments, and use it: by pip (wheel and
sdist), pipx and uv, with every Python of 3.10 or later on this machine.

    python3 .ci/try_wheel.py [--dist dist]

pipx and uv are taken from PATH; a way or a Python that is not here is said and left out. Nothing
stays: environments and tools live in a temporary folder. Ends with 1 if something failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from environment import ROOT, interpreters, python_of

LOG = """[rank0]: step 3 loss 0.52
[rank1]: step 3 loss 0.52
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 30, in <module>
[rank1]:     main()
[rank1]:   File "/job/train.py", line 14, in main
[rank1]:     row = json.loads(line)
[rank1]: ValueError: the line is broken
"""
LIMIT_S = 600


class FailedError(Exception):
    """A command did not do what it should."""


def call(
    *command: str | Path, codes: tuple[int, ...] = (0,), home: dict[str, str] | None = None
) -> str:
    """Run a command with an environment in which nothing of this checkout is found; return what it
    printed.
    """
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=LIMIT_S,
        env={**clean, **(home or {})},
    )
    if done.returncode not in codes:
        raise FailedError(f"{command[0]} ended with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def use(tool: Path, folder: Path) -> None:
    """What somebody does first with a new tool."""
    log = folder / "slurm-1.out"
    log.write_text(LOG, encoding="utf-8")
    for arguments, codes, wanted in (
        (["--version"], (0,), "trainprobe "),
        (["--help"], (0,), "Start here:"),
        (["causes", "rank-stuck"], (0,), "rank-stuck"),
        (["explain", str(log), "--no-color"], (1,), "Rank 1 raised ValueError"),
        (["demo"], (0,), "file-lock-held"),
    ):
        said = call(tool, *arguments, codes=codes)
        if wanted not in said:
            raise FailedError(
                f"trainprobe {' '.join(arguments)} does not say {wanted!r}: {said[-400:]}"
            )


def by_pip(python: Path, package: Path, folder: Path) -> Path:
    """Install by pip into a new environment; return the command."""
    call(python, "-I", "-m", "venv", folder / "venv")
    call(python_of(folder / "venv"), "-m", "pip", "install", "-q", package)
    return folder / "venv" / "bin" / "trainprobe"


def by_pipx(python: Path, package: Path, folder: Path) -> Path:
    """Install by pipx into a home of its own; return the command."""
    home = {"PIPX_HOME": str(folder / "home"), "PIPX_BIN_DIR": str(folder / "bin")}
    call("pipx", "install", "--python", python, package, home=home)
    return folder / "bin" / "trainprobe"


def by_uv(python: Path, package: Path, folder: Path) -> Path:
    """Install by uv into a folder of its own; return the command."""
    home = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    call("uv", "tool", "install", "--python", python, package, home=home)
    return folder / "bin" / "trainprobe"


def pythons() -> Iterator[tuple[int, Path]]:
    """One Python of each minor version."""
    seen: set[int] = set()
    for python in interpreters():
        minor = int(call(python, "-I", "-c", "import sys; print(sys.version_info[1])"))
        if minor not in seen:
            seen.add(minor)
            yield minor, python


def main() -> int:
    """Try each way with each Python; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    dist = parser.parse_args().dist.resolve()
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    ways = {"uv": (by_uv, wheel), "pipx": (by_pipx, wheel), "pip": (by_pip, wheel)}
    for name in ("uv", "pipx"):
        if not any(os.access(Path(at) / name, os.X_OK) for at in os.get_exec_path()):
            print(f"{name} is not on PATH: left out")
            del ways[name]
    ways["pip, sdist"] = (by_pip, archive)
    found = dict(sorted(pythons()))
    missing = ", ".join(f"3.{minor}" for minor in range(10, 15) if minor not in found)
    print(f"not on this machine: Python {missing or 'none of 3.10 to 3.14'}")
    failed = 0
    for name, (way, package) in ways.items():
        for minor, python in found.items():
            began = time.monotonic()
            try:
                with tempfile.TemporaryDirectory(prefix="trainprobe-wheel-") as folder:
                    use(way(python, package, Path(folder)), Path(folder))
                says = "works"
            except (FailedError, OSError, subprocess.SubprocessError) as error:
                failed += 1
                says = f"FAILED: {error}"
            took_s = time.monotonic() - began
            print(f"3.{minor}  {name:<10}  {took_s:5.0f} s  {says}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
