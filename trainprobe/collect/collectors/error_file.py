"""The file TORCHELASTIC_ERROR_FILE of a rank (torch/distributed/elastic/multiprocessing)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict

from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence
from trainprobe.regular_files import read_regular_file

if TYPE_CHECKING:
    from trainprobe.case import Case

FILE_CAP_BYTES = 2 * 2**20


def look_at_error_file(case: Case, cell: str, member: Member, path: str) -> Evidence:
    """Record one `error_file`: its content, `path`, and whether it is `present`."""
    return record_look(
        case, COLLECTOR, lambda: read_error_file(path), cell=cell, subject=member.subject
    )[0]


def read_error_file(path: str) -> LookResult:
    """The file may be half written: its writer may have been killed over it."""
    from trainprobe.system.answering import silent

    base: Dict[str, Any] = {"path": path, "present": False}
    silence = silent(path)
    if silence:
        return refused("timed_out", f"the error file was not read: {silence}", **base)
    try:
        text = read_regular_file(path, FILE_CAP_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return LookResult(base)
    except ValueError as error:
        return refused("unavailable", f"the error file {error}", **base)
    except OSError as error:
        return refused("unavailable", f"the error file cannot be read: {error.strerror}", **base)
    base["present"] = True
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return refused("partial", "the error file holds no whole JSON", **base, text=text[:4000])
    if not isinstance(content, dict):
        return refused(
            "partial", "the error file holds JSON of another shape", **base, text=text[:4000]
        )
    return LookResult({**content, **base})


COLLECTOR = Collector(
    "error_file", None, deadline_s=1.0, source="torchelastic error file", rounds=()
)
