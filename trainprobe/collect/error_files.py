"""The error file that torchelastic writes for a rank that raised (TORCHELASTIC_ERROR_FILE;
torch/distributed/elastic/multiprocessing/errors).
"""

from __future__ import annotations

import json
from typing import Any, Dict

from trainprobe.case import Case
from trainprobe.collect.look_results import LookResult, record, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence
from trainprobe.regular_files import read_regular_file

FILE_CAP_BYTES = 2 * 2**20


def look_at_error_file(
    case: Case, cell: str, member: Member, path: str, *, deadline_s: float = 1.0
) -> Evidence:
    """Record one `error_file`: what the file says, plus `path` and `present`. That there is none
    is a good look, not a failed one.
    """
    seen = side_by_side([lambda: read_error_file(path)], deadline_s)[0]
    return record(
        case,
        "error_file",
        seen,
        subject=member.subject,
        cell=cell,
        source="torchelastic error file",
    )


def read_error_file(path: str) -> LookResult:
    """The same without a case. The file may be half written: its writer may have been killed
    over it.
    """
    base: Dict[str, Any] = {"path": path, "present": False}
    try:
        content = read_regular_file(path, FILE_CAP_BYTES)
    except FileNotFoundError:
        return LookResult(base)
    except ValueError as error:
        return refused("unavailable", f"the error file {error}", **base)
    except OSError as error:
        return refused("unavailable", f"the error file cannot be read: {error.strerror}", **base)
    base["present"] = True
    text = content.decode("utf-8", "replace")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return refused("partial", "the error file holds no whole JSON", **base, text=text[:4000])
    if not isinstance(said, dict):
        return refused(
            "partial", "the error file holds JSON of another shape", **base, text=text[:4000]
        )
    return LookResult({**said, **base})
