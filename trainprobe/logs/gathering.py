"""One case out of many files: dumps and stack dumps as ever, elastic error files, and everything that is text as a log."""

from __future__ import annotations

import importlib
import sys
import time

from trainprobe.case import Case, read_case
from trainprobe.collect.inputs import STDIN, find_saved, look_at_saved, read_head
from trainprobe.collect.source import read_regular_file
from trainprobe.errors import UsageError
from trainprobe.logs.finding import NAME, Found
from trainprobe.model.progress import Progress
from trainprobe.model.request import ExplainRequest
from trainprobe.stacks.rank_prefix import strip_prefix

MOST_NAMED = 10
CELL = "job"


def gather(case: Case, asked: ExplainRequest, found: Found, progress: Progress) -> list[str]:
    """Write everything that was found into `case`; return what the reader of the report must know: what was not understood or left out.

    Raises UsageError where nothing of it can be judged.
    """
    for folder in found.cases:
        for record in read_case(folder).evidence:
            case.add(record.kind, subject=record.subject, cell=record.cell, source=record.source, began=record.began, took_s=record.took_s,
                     outcome=record.outcome, reason=record.reason, data=record.data)  # fmt: skip
    saved = find_saved(found.files)
    if saved.dumps or saved.stacks:
        look_at_saved(case, saved)
    other = list(saved.other)
    read = 0
    for number, path in enumerate(saved.rest):
        why = _read(case, path, number)
        if why:
            other.append(f"{path} {why}")
        else:
            read += 1
    if not (found.cases or saved.dumps or saved.stacks or read):
        shown = "; ".join(other[:MOST_NAMED]) or "it is empty"
        more = f" and {len(other) - MOST_NAMED} more" if len(other) > MOST_NAMED else ""
        raise UsageError(f"Nothing in {', '.join(asked.paths[:3])} is a log, a dump or a case: {shown}{more}.", NAME)
    if read:
        progress.note("Judging what was read.")
        case.add("log.request", cell=CELL, data={"since": None, "ranks": list(asked.ranks), "max_events": asked.max_events})
    _look_at_given(case, asked)
    return [*found.left_out, *([f"Not understood: {'; '.join(other[:MOST_NAMED])}."] if other else [])]


def _look_at_given(case: Case, asked: ExplainRequest) -> None:
    if asked.env_files or asked.nodes or asked.gpus:
        given = importlib.import_module("trainprobe.logs.given")
        given.look_at_given(case, asked.env_files, asked.nodes, asked.gpus)


def _read(case: Case, path: str, number: int) -> str:
    began = time.time()
    try:
        content = sys.stdin.buffer.read() if path == STDIN else read_regular_file(path, 64 * 2**20)
        head = content[:65536] if path == STDIN else read_head(path, 65536)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError as error:
        return str(error)
    if not content or b"\0" in head:
        return "is empty" if not content else "is no text"
    lines = content.decode("utf-8", "replace").splitlines()
    rows = []
    for place, line in enumerate(lines, 1):
        if len(lines) <= 4000 or place <= 60 or place > len(lines) - 200:
            rank, rest = strip_prefix(line)
            rows.append([place, None, rank, "", rest[:2000]])
    data = {"path": path, "bytes": len(content), "read_bytes": len(content), "compression": "", "lines": len(lines), "first_at": None,
            "last_at": None, "what": "log", "attempts": 1, "cut_lines": 0}  # fmt: skip
    case.add("log.file", cell=CELL, source=path, began=began, took_s=time.time() - began, data=data)
    extract = {"path": path, "file": number, "rank": None, "rank_source": "", "host": "", "rows": rows, "lines": len(lines),
               "last_line": len(lines), "has_end": True}  # fmt: skip
    case.add("log.extract", cell=CELL, source=path, began=began, data=extract)
    return ""
