"""py-spy as a program: where it is, its output, and why it refused (0.4, `dump --json`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from trainprobe.collect import permission, procfs
from trainprobe.collect.notebook_cells import cell_file
from trainprobe.model.evidence import LookOutcome

THREADS_CAP = 128
FRAMES_CAP = 200
NAME_CAP = 300
LOCAL_CAP = 4096
OUTPUT_CAP_BYTES = 16 * 2**20
# Locals that say which file a thread wants to lock where the kernel does not know of the lock:
# filelock polls, torch's FileBaton waits for the file `lock` in the build directory to vanish.
# Asked for by name, in these files only.
LOCK_LOCALS = frozenset({"lock_filename", "build_directory"})
LOCK_FILES = re.compile(r"(?:/filelock/[^/]+|/torch/utils/(?:cpp_extension|file_baton))\.py$")
_DENIED = re.compile(
    r"permission denied|operation not permitted|SYS_PTRACE|\bEPERM\b|\bEACCES\b|os error"
    r" (?:1|13)\b",
    re.IGNORECASE,
)
_NOT_PYTHON = re.compile(
    r"failed to find python version|failed to find (?:a )?python interpreter|python interpreter in"
    r" the \.data",
    re.IGNORECASE,
)


# As clap writes it, by its version.
_UNKNOWN_OPTION = re.compile(r"(?:Found|unexpected) argument '(--[a-z-]{1,40})'")


class Dump(NamedTuple):
    """A parsed dump: threads as the case keeps them, and its `flaw`, empty where it has none."""

    threads: List[Dict[str, Any]]
    cut_threads: int
    cut_frames: int
    flaw: str


def find() -> Tuple[Optional[str], str]:
    """The path of py-spy, or None and why: TRAINPROBE_PY_SPY, our Python's folder, PATH."""
    asked = os.environ.get("TRAINPROBE_PY_SPY", "")
    if asked:
        return (
            (asked, "")
            if shutil.which(asked)
            else (None, f"TRAINPROBE_PY_SPY names {asked}, which is no program that can be run")
        )
    neighbour = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "py-spy")
    path = neighbour if os.access(neighbour, os.X_OK) else shutil.which("py-spy")
    return (
        (path, "")
        if path
        else (
            None,
            (
                "py-spy is not installed beside trainprobe nor on PATH; install it with: pip"
                " install py-spy"
            ),
        )
    )


def why_failed(pid: int, stderr: str, started_ticks: Optional[int]) -> Tuple[LookOutcome, str]:
    """Find the real reason in py-spy's message and /proc; the message is often too general."""
    gone = procfs.gone(pid, started_ticks)
    if gone:
        return "unavailable", gone
    unknown = unknown_option(stderr)
    if unknown:
        why = (
            f"this py-spy does not know the option {unknown}: it is another version than the 0.4"
            " that trainprobe needs; install that with: pip install 'py-spy>=0.4'"
        )
        return "unavailable", why
    if _DENIED.search(stderr):
        return "denied", permission.why_refused(pid)
    if _NOT_PYTHON.search(stderr):
        return (
            "unavailable",
            f"process {pid} is no Python program, or a Python that py-spy does not know",
        )
    return "crashed", f"py-spy failed on process {pid}: {first_line(stderr) or 'it said nothing'}"


def unknown_option(stderr: str) -> str:
    """The option that this version of py-spy refuses, or ""."""
    found = _UNKNOWN_OPTION.search(stderr)
    return found.group(1) if found else ""


def first_line(text: str) -> str:
    """The first line of py-spy's complaint with its innermost cause, without the backtrace."""
    lines = [
        line.strip() for line in text.split("Stack backtrace:", 1)[0].splitlines() if line.strip()
    ]
    if not lines:
        return ""
    causes = [re.sub(r"^\d+: ", "", line) for line in lines[1:] if line != "Caused by:"]
    message = lines[0].removeprefix("Error: ")
    return (f"{message} ({causes[-1]})" if causes else message)[:NAME_CAP]


def parse(content: bytes, pid: int) -> Optional[Dump]:
    """Parse the output of `py-spy dump --json`, the main thread first; None for other output."""
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list):
        return None
    read = [_thread(row) for row in rows]
    threads = [thread for thread in read if thread is not None]
    threads.sort(
        key=lambda thread: (
            thread["os_thread_id"] != pid,
            not thread["owns_gil"],
            not thread["active"],
        )
    )
    flaw = (
        f"{len(rows) - len(threads)} of {len(rows)} entries of py-spy's answer are no threads"
        if len(threads) < len(rows)
        else ""
    )
    if not rows:
        flaw = (
            "py-spy found no Python thread; the interpreter is starting, ending, or all its threads"
            " run outside Python"
        )
    found = threads[:THREADS_CAP]
    return Dump(
        found, len(threads) - len(found), sum(thread.get("cut_frames", 0) for thread in found), flaw
    )


def wants_locals(threads: List[Dict[str, Any]]) -> bool:
    """True when a frame's locals name a lock file that nothing else tells of."""
    return any(LOCK_FILES.search(frame["file"]) for thread in threads for frame in thread["frames"])


def _thread(row: Any) -> Optional[Dict[str, Any]]:
    frames = row.get("frames") if isinstance(row, dict) else None
    if not isinstance(frames, list):
        return None
    read = [frame for frame in map(_frame, frames) if frame is not None]
    thread: Dict[str, Any] = {
        "thread_id": _number(row.get("thread_id")),
        "os_thread_id": _number(row.get("os_thread_id")),
        "name": _text(row.get("thread_name")),
        "active": row.get("active") is True,
        "owns_gil": row.get("owns_gil") is True,
        "frames": read,
    }
    if len(read) > FRAMES_CAP:
        # Deep recursion: the leaf says where it stands, the root how it came there.
        thread["frames"] = read[: FRAMES_CAP - 50] + read[-50:]
        thread["cut_frames"] = len(read) - FRAMES_CAP
    return thread


def _frame(row: Any) -> Optional[Dict[str, Any]]:
    if not isinstance(row, dict):
        return None
    frame: Dict[str, Any] = {
        "name": _text(row.get("name")),
        "file": cell_file(_text(row.get("filename"))),
        "line": _number(row.get("line")) or 0,
    }
    if row.get("module"):
        frame["module"] = _text(row["module"])
    found = _lock_locals(row.get("locals")) if LOCK_FILES.search(frame["file"]) else {}
    if found:
        frame["locals"] = found
    return frame


def _lock_locals(rows: Any) -> Dict[str, str]:
    found = {}
    for row in rows if isinstance(rows, list) else ():
        if (
            isinstance(row, dict)
            and row.get("name") in LOCK_LOCALS
            and isinstance(row.get("repr"), str)
        ):
            found[row["name"]] = row["repr"].strip("\"'")[:LOCAL_CAP]
    if "build_directory" in found:
        # torch.utils.cpp_extension waits for the file `lock` there, and keeps that name in no local
        # of its own.
        found["lock_file_path"] = found.pop("build_directory").rstrip("/") + "/lock"
    return found


def _text(value: Any) -> str:
    return value[:LOCAL_CAP] if isinstance(value, str) else ""


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
