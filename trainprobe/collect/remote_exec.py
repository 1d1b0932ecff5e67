"""Python's way into a live process since 3.14 (PEP 768): its main thread runs a file."""

from __future__ import annotations

import os
import re
from typing import Optional, Tuple

from trainprobe.collect import elf_memory, procfs
from trainprobe.system.run import run

SINCE = (3, 14)
_NAMED = re.compile(r"^(?:lib)?python(\d)\.(\d{1,2})(?:t|d)?(?:\.so.*)?$")
_CALL = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"


def python_version(pid: int) -> Optional[Tuple[int, int]]:
    """Major and minor version of its Python, by the names of mapped files, or None."""
    for mapping in elf_memory.mappings(pid):
        found = _NAMED.match(os.path.basename(mapping.path))
        if found and "x" in mapping.mode:
            return int(found.group(1)), int(found.group(2))
    return None


def suits(version: Optional[Tuple[int, int]], main_thread_runs: bool, environ: str) -> str:
    """Why this way is not open, or an empty string. `environ` is the text of /proc/PID/environ."""
    if version is None or version < SINCE:
        return "sys.remote_exec is new in Python 3.14"
    if not main_thread_runs:
        return "its main thread runs no Python now, and sys.remote_exec needs it to"
    if any(
        entry.startswith("PYTHON_DISABLE_REMOTE_DEBUG=") and entry != "PYTHON_DISABLE_REMOTE_DEBUG="
        for entry in environ.split("\0")
    ):
        return "PYTHON_DISABLE_REMOTE_DEBUG is set for it"
    return ""


def ask(pid: int, path: str, timeout_s: float) -> str:
    """Have the process run the file `path`. Return why that failed, or an empty string: then it
    will, as soon as it can.

    The caller must be the same version of Python as the process, so it is called with the
    interpreter of the process itself.
    """
    environment = {
        "LC_ALL": "C",
        **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
    }
    ran = run(
        [f"/proc/{pid}/exe", "-I", "-S", "-c", _CALL, str(pid), path],
        timeout_s=timeout_s,
        env=environment,
        output_cap_bytes=65536,
    )
    if ran.ended.how == "exited" and ran.ended.code == 0:
        return ""
    lines = [line for line in ran.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return (
        f"sys.remote_exec failed on process {pid}:"
        f" {lines[-1][:300] if lines else ran.ended.reason or ran.ended.how}"
    )


def main_thread_runs(pid: int) -> bool:
    """True when the main thread is on a CPU now, and so will soon run our file."""
    now = procfs.stat(pid, pid)
    return now is not None and now.state == "R"
