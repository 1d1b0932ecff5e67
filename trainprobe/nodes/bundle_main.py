"""The beginning of a bundle: puts it into a private folder, runs one command of it there, and takes
the folder away again.

It lies in the bundle as __main__.py, and is also read out of one that comes through stdin. Nothing
of the tool can be imported before it has run.
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
        raise SystemExit(
            f"trainprobe: Python {OLDEST[0]}.{OLDEST[1]} or newer is needed; this is"
            f" {sys.version.split()[0]} of {sys.executable}."
        )
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup the hang-up stays ignored
            signal.signal(number, _end)
    folder = _new_folder()
    try:
        archive.extractall(folder)
        archive.close()
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        folders = importlib.import_module(
            "trainprobe.system.working_folders"
        )  # by name: until now there is no such package here
        folders.mark(folder)
        folders.sweep(os.path.dirname(folder))
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


def _new_folder() -> str:
    """A private folder from which a program can run; a pod may have only /dev/shm."""
    second = ""
    for place in (
        os.environ.get("TMPDIR", ""),
        "/tmp",  # noqa: S108 - the folder in it is private
        "/dev/shm",  # noqa: S108 - the folder in it is private
        "/var/tmp",  # noqa: S108 - the folder in it is private
        os.getcwd(),
    ):
        try:
            folder = tempfile.mkdtemp(prefix=PREFIX, dir=place) if place else ""
            runs = bool(folder) and not os.statvfs(folder).f_flag & os.ST_NOEXEC
        except OSError:
            continue
        if runs or (folder and not second):
            second, folder = folder, second
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        if runs:
            return second
    if not second:
        raise SystemExit(
            f"trainprobe: there is no folder on {os.uname().nodename} in which a file can be made."
        )
    return second


if __name__ == "__main__":
    run(zipfile.ZipFile(sys.argv[0]), sys.argv[1:])
