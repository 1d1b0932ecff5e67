"""How fast files are read and written, bounded in bytes and in time."""

from __future__ import annotations

import os
import sysconfig
import time
from typing import Any, Dict, List

from _shared import checks, child_processes

MIB = 2**20
SMALL_BYTES, SMALL_FILES, SMALL_S = 16384, 400, 0.5
LARGE_BYTES, LARGE_S = 64 * MIB, 5.0


def small_files(_launch: checks.Launch, results: checks.Results) -> None:
    """Open and read many small files of the installed packages, which is what an import does."""
    folder = sysconfig.get_paths()["purelib"]
    least = results.threshold("fs.smallfile", 100.0)
    answer = child_processes.ask(lambda: _read_small(folder), 10.0)
    if answer.how != "answered":
        state = "unknown" if answer.how != "timed_out" else "fail"
        sentence = f"Small files of {folder} could not be read: {answer.reply}."
        results.add("fs.smallfile", state, sentence, fix="look at the mount of the environment")
        return
    files, took_s = answer.reply
    if files < 20:
        results.add("fs.smallfile", "skip", f"{folder} holds too few files to measure with.")
        return
    rate = files / max(took_s, 1e-6)
    sentence = (
        f"Small files of {folder}: {rate:,.0f} a second ({files} files, what the page cache holds"
        " included)."
    )
    state = "fail" if rate < least else "ok"
    fix = "put the environment on a local disk, or into a squashfs or container image"
    results.add("fs.smallfile", state, sentence, round(rate), fix=fix, threshold=least)


def _read_small(folder: str) -> List[float]:
    files, began = 0, time.monotonic()
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            if files >= SMALL_FILES or time.monotonic() - began > SMALL_S:
                return [files, time.monotonic() - began]
            with open(os.path.join(place, name), "rb") as file:
                file.read(SMALL_BYTES)
            files += 1
    return [files, time.monotonic() - began]


def large_files(folders: List[str], results: checks.Results) -> None:
    """Write, fsync, rename and read one file in each folder, all one after another."""
    if not folders:
        results.add("fs.seqread", "skip", "No folder was named that can be written.")
        results.add("fs.ckpt", "skip", "No folder was named that can be written.")
        return
    rates: Dict[str, Any] = {}
    for folder in folders[:8]:
        answer = child_processes.ask(lambda folder=folder: _large(folder), 4 * LARGE_S)  # type: ignore[misc]
        rates[folder] = (
            answer.reply if answer.how == "answered" else f"{answer.how}: {answer.reply}"
        )
    for check, key, what in (
        ("fs.ckpt", "write", "written with fsync and rename"),
        ("fs.seqread", "read", "read back"),
    ):
        least = results.threshold(check, 20.0)
        measured = {folder: rate[key] for folder, rate in rates.items() if isinstance(rate, dict)}
        slow = [f"{folder} {rate:.0f} MB/s" for folder, rate in measured.items() if rate < least]
        broken = [
            f"{folder} {rate}" for folder, rate in rates.items() if not isinstance(rate, dict)
        ]
        sentence = "; ".join(slow + broken) or ", ".join(
            f"{folder} {rate:.0f} MB/s" for folder, rate in measured.items()
        )
        results.add(
            check,
            "fail" if slow or broken else "ok",
            f"Large files, {what}: {sentence}.",
            measured,
            fix="stage to a local disk, save asynchronously, or ask for more stripes",
            threshold=f"{least:g} MB/s",
        )


def _large(folder: str) -> Dict[str, float]:
    block = os.urandom(MIB)  # what compresses well would measure the compression
    path = os.path.join(folder, f".trainprobe-{os.getpid()}")
    try:
        began, size = time.monotonic(), 0
        with open(path, "xb", buffering=0) as file:
            while size < LARGE_BYTES and time.monotonic() - began < LARGE_S:
                size += file.write(block) or 0
            os.fsync(file.fileno())
        os.rename(path, path + "-done")
        path += "-done"
        wrote_s = time.monotonic() - began
        began, back = time.monotonic(), 0
        with open(path, "rb", buffering=0) as file:
            # from the disk and not from memory, where the file system obeys
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while time.monotonic() - began < LARGE_S:
                piece = len(file.read(MIB))
                back += piece
                if not piece:
                    break
        return {
            "write": size / 1e6 / max(wrote_s, 1e-6),
            "read": back / 1e6 / max(time.monotonic() - began, 1e-6),
        }
    finally:
        if os.path.exists(path):
            os.unlink(path)
