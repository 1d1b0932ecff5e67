"""The beginning of a bundle: puts it into a private folder, runs one command of it there, and takes the folder away again.

It lies in the bundle as __main__.py, and is also read out of one that comes through stdin. Nothing of the tool can be imported before it has run.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import tempfile
import zipfile
from typing import NoReturn

OLDEST = (3, 9)
PY_SPY = "bin/py-spy"
PREFIX = "trainprobe-"  # what a killed run leaves is known by this, and cleared away by the next


def run(archive: zipfile.ZipFile, words: list[str]) -> NoReturn:
    """Run `trainprobe WORDS` out of the bundle, and end with its exit code."""
    if sys.version_info < OLDEST:
        raise SystemExit(f"trainprobe: Python {OLDEST[0]}.{OLDEST[1]} or newer is needed; this is {sys.version.split()[0]} of {sys.executable}.")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    root = _room()
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=root)
    try:
        archive.extractall(folder)
        archive.close()
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        folders = importlib.import_module("trainprobe.system.working_folders")  # by name: until now there is no such package here
        folders.mark(folder)
        folders.sweep(root)
        py_spy = os.path.join(folder, PY_SPY)
        if os.path.exists(py_spy):
            os.chmod(py_spy, 0o700)
            os.environ.setdefault("TRAINPROBE_PY_SPY", py_spy)
        code = importlib.import_module("trainprobe.cli.bundled").command(words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(code)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _room() -> str:
    """A folder that can be written to, and from which a program can be run if there is one: a pod may have nothing but /dev/shm."""
    found = ""
    for place in (os.environ.get("TMPDIR", ""), "/tmp", "/dev/shm", "/var/tmp", os.getcwd()):  # noqa: S108 - the folder in it is private
        try:
            runs = not os.statvfs(place).f_flag & os.ST_NOEXEC
        except OSError:
            continue
        if os.access(place, os.W_OK | os.X_OK) and (runs or not found):
            found = place
            if runs:
                break
    if not found:
        raise SystemExit(f"trainprobe: there is no folder on {os.uname().nodename} in which a file can be made.")
    return found


if __name__ == "__main__":
    run(zipfile.ZipFile(sys.argv[0]), sys.argv[1:])
