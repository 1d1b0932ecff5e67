"""The flight recorder: whether it is on, and whether its dumps can be written."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from typing import Optional

from _shared import checks, child_processes


def number(name: str) -> Optional[float]:
    text = os.environ.get(name, "")
    return float(text) if re.fullmatch(r"-?\d{1,12}", text) else None


def recorder(_launch: checks.Launch, results: checks.Results) -> None:
    name = next(
        (
            name
            for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
            if number(name) is not None
        ),
        "",
    )
    size, why = (
        (number(name), f"{name}={os.environ[name]}")
        if name
        else (built_in_size(), "torch's own default")
    )
    dumps = os.environ.get("TORCH_NCCL_DUMP_ON_TIMEOUT", "1") not in (
        "0",
        "false",
        "no",
        "n",
        "off",
        "f",
    )
    fix = (
        "export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_TRACE_BUFFER_SIZE=20000"
        " TORCH_NCCL_DUMP_ON_TIMEOUT=1"
    )
    if size is None:
        results.add(
            "diag.recorder",
            "unknown",
            "Whether the flight recorder is on is unknown: no variable sets it, and torch's"
            " headers are missing.",
        )
    elif size <= 0 or not dumps:
        sentence = (
            f"The flight recorder is {'off' if size <= 0 else 'not written on a time-out'} ({why})."
        )
        results.add("diag.recorder", "warn", sentence, size, fix=fix)
    else:
        results.add(
            "diag.recorder", "ok", f"The flight recorder keeps {size:g} collectives ({why}).", size
        )


def built_in_size() -> Optional[float]:
    """The default in the headers that come with torch."""
    for folder in sys.path:
        with (
            contextlib.suppress(OSError),
            open(
                os.path.join(
                    folder, "torch/include/torch/csrc/distributed/c10d/FlightRecorder.hpp"
                ),
                encoding="utf-8",
            ) as file,
        ):
            found = re.search(
                r"max_entries_\s*=\s*getCvarInt\(\s*\{[^}]{1,200}\},\s*(\d+)\)", file.read(2**18)
            )
            return float(found.group(1)) if found else None
    return None


def dump(_launch: checks.Launch, results: checks.Results) -> None:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    prefix = next(
        (
            os.environ[name]
            for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
            if os.environ.get(name)
        ),
        "",
    )
    folder = os.path.dirname(prefix) if prefix else os.path.join(cache, "torch")
    folder = folder or os.getcwd()
    answer = child_processes.ask(
        lambda: _written(folder, made=not prefix), results.threshold("diag.dump", 5.0)
    )
    if answer.how == "answered":
        results.add("diag.dump", "ok", f"Flight-recorder dumps can be written to {folder}.", folder)
    else:
        fix = (
            f"mkdir -p {folder}, or export"
            " TORCH_FR_DUMP_TEMP_FILE=/path/that/can/be/written/trace_rank_"
        )
        sentence = f"Flight-recorder dumps cannot be written to {folder}: {answer.reply}."
        results.add("diag.dump", "warn", sentence, folder, fix=fix)


def _written(folder: str, *, made: bool) -> None:
    while made and not os.path.isdir(folder):  # torch makes the folders of its default itself
        folder = os.path.dirname(folder)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".trainprobe-") as file:
        file.write(b"x" * 65536)
        file.flush()
