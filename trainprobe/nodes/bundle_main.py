"""The beginning of a bundle: puts it into a private folder, runs one command of it there, and takes
the folder away again.

It is also read out of a bundle that comes through stdin. Nothing of the tool can be imported before
it has run.
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

PY_SPY = "bin/py-spy"
PREFIX = "trainprobe-"  # what a killed run leaves is known by this, and cleared away by the next


def run(archive: zipfile.ZipFile, words: list[str]) -> NoReturn:
    """Run `trainprobe WORDS` out of the bundle, and end with its exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup the hang-up stays ignored
            signal.signal(number, _end)
    folder = _unpacked(archive)
    if not folder:
        raise SystemExit(_nowhere(words))
    try:
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


def _unpacked(archive: zipfile.ZipFile) -> str:
    """A private folder with the files, "" where no place has room for them. Best is one from which
    a program can run; a pod may have only /dev/shm, and a full node only its working folder.
    """
    places: list[tuple[bool, int, str]] = []
    for place in (
        os.environ.get("TMPDIR", ""),
        "/tmp",  # noqa: S108 - the folder in it is private
        "/dev/shm",  # noqa: S108 - the folder in it is private
        "/var/tmp",  # noqa: S108 - the folder in it is private
        _working_folder(),
        os.path.dirname(os.path.abspath(archive.filename)) if archive.filename else "",
    ):
        try:
            runs = not os.statvfs(place).f_flag & os.ST_NOEXEC
        except OSError:
            continue
        places.append((not runs, len(places), place))
    for _, _, place in sorted(places):
        folder = ""
        try:
            folder = tempfile.mkdtemp(prefix=PREFIX, dir=place)
            archive.extractall(folder)
        except OSError:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
        else:
            return folder
    return ""


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _nowhere(words: list[str]) -> int:
    """Say that nothing could be run, also in the words of the format that was asked for: a monitor
    takes silence for health. Return the exit code.
    """
    sentence = f"No folder on {os.uname().nodename} has room for the files of trainprobe."
    sys.stderr.write(f"trainprobe: {sentence}\n")
    try:  # from the file itself, which Python can import from
        formats = importlib.import_module("trainprobe.report.formats")
        instead = formats.failure_of(words, sentence)
    except ImportError:  # it came through stdin
        instead = None
    if instead is not None:
        sys.stdout.write(instead[0])
        return int(instead[1])
    if words[:1] != ["ready"]:
        return 1
    # for a slot it is no fault of the node, unless that was asked for
    asked = "--inconclusive=fail" in words or ("--inconclusive", "fail") in zip(words, words[1:])
    return 10 if asked else 0
