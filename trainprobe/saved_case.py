"""Reading a case that was saved, perhaps by a stranger: as much of it as can be read, within
bounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Dict, List, Tuple

from trainprobe.errors import UsageError
from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.record_classes import LazyData, read_class
from trainprobe.regular_files import open_regular, read_regular_file

SCHEMA = "trainprobe.case/1"
WITH_CLASSES = "trainprobe.case/2"  # the same, with lines that hold a class of records
META, EVIDENCE = "case.json", "evidence.jsonl"
MOST_META_BYTES = 2**20
MOST_EVIDENCE_BYTES = 2**30
MOST_LINE_BYTES = 64 * 2**20
MOST_DAMAGED_LINES = 10_000
MOST_DAMAGE = 20


@dataclass(frozen=True)
class SavedCase:
    """A case as it was found. `damage` holds one sentence for each part that could not be read."""

    folder: str
    meta: Mapping[str, Any]
    evidence: Tuple[Evidence, ...]
    damage: List[str]


def read_case(folder: str) -> SavedCase:
    """Read a saved case, as much of it as can be read; UsageError when `folder` is none."""
    meta = _read_meta(folder)
    damage: List[str] = []
    evidence: Dict[str, Evidence] = {}
    try:
        fd, found = open_regular(os.path.join(folder, EVIDENCE), within=folder)
        with open(fd, "rb") as file:
            _read_lines(file, found.st_size, evidence, damage)
    except (OSError, ValueError) as error:
        damage.append(f"{EVIDENCE} {_refusal(error)}.")
    if len(damage) > MOST_DAMAGE:
        damage[MOST_DAMAGE:] = [f"{len(damage) - MOST_DAMAGE} more lines cannot be read."]
    records = list(evidence.values())
    if any(isinstance(record.data, LazyData) for record in records):
        records.sort(key=_number)
    return SavedCase(folder, meta, tuple(records), damage)


def _number(record: Evidence) -> int:
    """Records of classes stand in other lines than they were made in."""
    digits = record.id[1:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0


def _read_lines(
    file: BinaryIO, size: int, evidence: Dict[str, Evidence], damage: List[str]
) -> None:
    """Read the lines into `evidence`, and what is wrong with them into `damage`. Raises ValueError
    when the rest cannot be read.
    """
    if size > MOST_EVIDENCE_BYTES:
        raise ValueError(f"is larger than {MOST_EVIDENCE_BYTES // 2**20} MiB and was not read")
    number = 0
    while line := file.readline(MOST_LINE_BYTES):
        number += 1
        if not line.endswith(b"\n"):
            if len(line) == MOST_LINE_BYTES:
                raise ValueError(f"was read to line {number}, which is larger than any look")
            damage.append(
                f"The last line of {EVIDENCE} is torn: its writer was ended in the middle of it."
            )
        elif line.strip():
            _read_line(line, number, evidence, damage)
        if len(damage) > MOST_DAMAGED_LINES:
            raise ValueError(f"was read to line {number} only, for want of whole lines")


def _read_line(line: bytes, number: int, evidence: Dict[str, Evidence], damage: List[str]) -> None:
    try:
        row = json.loads(line.decode("utf-8"))
        found = _of_a_class(row) if _is_class(row) else [from_json(Evidence, row)]
    except (ValueError, RecursionError) as error:
        damage.append(f"Line {number} of {EVIDENCE} cannot be read: {_short(error)}.")
        return
    for new in found:
        if new.id in evidence:
            damage.append(f"Line {number} of {EVIDENCE} uses {new.id} again; the first one counts.")
        else:
            evidence[new.id] = new


def _is_class(row: Any) -> bool:
    return isinstance(row, dict) and "form" in row and "id" not in row


def _of_a_class(row: Mapping[str, Any]) -> List[Evidence]:
    records = read_class(row)
    try:
        found = records.evidence()
    except ValueError:
        return [from_json(Evidence, one) for one in records.rows()]
    records.line()
    return found


def _refusal(error: BaseException) -> str:
    """A clause behind a file's name."""
    return f"cannot be read: {why(error)}" if isinstance(error, OSError) else str(error)


def _read_meta(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, META)
    do = "Name a folder that trainprobe made."
    try:
        if not os.path.exists(folder):
            raise UsageError(f"There is no folder {folder}.", do)
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is a file, not the folder of a case.", do)
        meta = json.loads(read_regular_file(path, MOST_META_BYTES, within=folder).decode("utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{folder} is not a case: it has no {META}.", do) from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {_short(error)}.", do) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} {_refusal(error)}.", do) from error
    schema = meta.get("schema") if isinstance(meta, dict) else None
    if not isinstance(schema, str) or not schema.startswith("trainprobe.case/"):
        raise UsageError(f"{folder} is not a case: {path} does not say so.", do)
    if schema not in (SCHEMA, WITH_CLASSES):
        raise UsageError(
            f"{path} has the format {schema}; this version reads {SCHEMA} and {WITH_CLASSES}.",
            "Read it with the version that wrote it.",
        )
    for name, kind in (("command", str), ("case", str), ("tool", dict)):
        if not isinstance(meta.get(name), kind):
            problem = f"{path} is damaged: its field {name} is missing or of the wrong type."
            raise UsageError(problem, do)
    return dict(meta)


def _short(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return why(error).split("\n")[0].rstrip(".")[:200]


def why(error: BaseException) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
