"""Judges the case given as an argument while an audit hook writes down all that a judge must not
do. Prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from typing import Any

CASE = os.path.realpath(sys.argv[1])
# The judge's own code and data, and Python with its packages, may be read; nothing else of the
# machine.
CODE = tuple(
    os.path.realpath(path)
    for path in (*sys.path, sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())
    if path and path != os.getcwd()
)
FORBIDDEN = (
    "subprocess.",
    "socket.",
    "os.fork",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.system",
    "os.kill",
    "pty.",
    "ctypes.dlopen",
)
LOOKS = ("open", "os.listdir", "os.scandir")
CHANGES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.utime",
    "shutil.",
)
seen: list[str] = []
case_files: list[str] = []


def hook(event: str, args: tuple[Any, ...]) -> None:
    if event.startswith((*FORBIDDEN, *CHANGES)):
        seen.append(f"{event} {args!r}"[:200])
    elif event in LOOKS and args and isinstance(args[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(args[0]))
        writes = (
            event == "open"
            and isinstance(args[2], int)
            and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        inside = path == CASE or path.startswith(CASE + os.sep)
        if inside:
            case_files.append(os.path.relpath(path, CASE))
        # whether the file system of the case gives answers is asked for first
        known = inside or path.startswith(CODE) or path.endswith("/mountinfo")
        if writes or not known:
            seen.append(f"{event} {path}")


sys.addaudithook(hook)

from trainprobe.cli import run  # noqa: E402 - importing is watched too

code = run(["explain", sys.argv[1], "--json", "-", "--quiet"])
sys.stdout.flush()
sys.stderr.write(json.dumps({"code": code, "seen": seen, "case_files": sorted(set(case_files))}))
