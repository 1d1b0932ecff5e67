"""What a job is given to be diagnosable: variables only, and none that its user has set.

Never a timeout, an algorithm or a choice of theirs: with them the job computes what it would have
computed.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
from collections.abc import Mapping, Sequence

RUN_MARK = "TRAINPROBE_RUN"
HEARTBEAT = "TRAINPROBE_HEARTBEAT"  # as trainprobe.heartbeat names it
RECORDER_ENTRIES = "2000"  # torch's own default since the recorder is on by default
# From this version on torch warns of the older names (FlightRecorder.hpp); before it, it knows no
# others.
NEW_NAMES = (2, 9)
RECORDER = ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE")
DUMPS = ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE")
ON_TIMEOUT = ("TORCH_NCCL_DUMP_ON_TIMEOUT",)
_VERSION = re.compile(r"^__version__ = '(\d{1,3})\.(\d{1,3})", re.MULTILINE)


def prepared(environ: Mapping[str, str], folder: str, argv: Sequence[str] = ()) -> dict[str, str]:
    """Return what to add to the environment of the command `argv`, whose evidence goes to
    `folder`.
    """
    folder = os.path.abspath(folder)
    version = torch_version(argv, environ)
    older = version is not None and version < NEW_NAMES
    added: dict[str, str] = {}
    for names, value in (
        (RECORDER, RECORDER_ENTRIES),
        (DUMPS, f"{folder}/flight/nccl_trace_rank_"),
        (ON_TIMEOUT, "1"),
        (("PYTHONFAULTHANDLER",), "1"),
        (("TORCHELASTIC_ERROR_FILE",), f"{folder}/error.json"),
    ):
        if not any(name in environ for name in names):
            added[names[0] if older else names[-1]] = value
    return added


def torch_version(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int, int] | None:
    """The version of torch beside the Python that runs a command; None where that is not seen at a
    glance.
    """
    if not argv:
        return None
    program = shutil.which(argv[0], path=environ.get("PATH")) or argv[0]
    python = _interpreter(program)
    places = f"{os.path.dirname(os.path.dirname(python))}/lib/python3*/site-packages/torch"
    for path in glob.glob(f"{places}/version.py"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            found = _VERSION.search(file.read(4096))
            if found is not None:
                return int(found[1]), int(found[2])
    return None


def _interpreter(program: str) -> str:
    """The program in the first line of a script, else the program itself."""
    with contextlib.suppress(OSError), open(program, "rb") as file:
        first = file.readline(512)
        if first.startswith(b"#!"):
            return os.fsdecode(first[2:].split()[0]) if first[2:].split() else program
    return program
