"""What a suspect waits for in a loop of its own, by the values of the names in its waiting line.

One look of py-spy at the locals of one frame, `while not os.path.exists(path)` say, for at most two
suspects. Kept are numbers, booleans, None and short texts of names that stand in the line or in the
loop's condition, unless the name is a secret's; the redactor sees them too. A path is asked for by
one stat, where no network or FUSE file system could let us hang.
"""

from __future__ import annotations

import ast
import json
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe import mount_table
from trainprobe.collect import procfs
from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.collect.notebook_cells import cell_file
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.secret_names import looks_secret
from trainprobe.stacks.awaited_names import asked_path, names_in

if TYPE_CHECKING:
    from trainprobe.case import Case

TEXT_CAP = 300
Scalar = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class AwaitedValue(Fact):
    """A name in the line at which a process waits, or in the condition of its loop, with its value
    as Python writes it.
    """

    pid: int = 0
    file: str = ""
    line: int = 0
    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class AwaitedPath(Fact):
    """The path that the waiting line of a process asks for; `exists` is None where it may not be
    asked.
    """

    pid: int = 0
    file: str = ""
    line: int = 0
    path: str = ""
    exists: Optional[bool] = None


@dataclass(frozen=True)
class WaitingLine:
    """A process at a line: `texts` are the statement and the conditions around it. Its names are
    those of the innermost frame of the file, of `function` where that is given.
    """

    member: Member
    file: str
    line: int
    texts: Tuple[str, ...]
    function: str = ""


def look_at_values(
    case: Case, cell: str, waiting: WaitingLine, *, cwd: str = "", deadline_s: float = 2.0
) -> List[Evidence]:
    """Record one `awaited` of this process; none where its line has no name."""
    names = [name for name in names_in(waiting.texts) if not looks_secret(name)]
    if not names:
        return []
    look = partial(_read, waiting, names, cwd, deadline_s)
    return record_look(
        case, COLLECTOR, look, cell=cell, subject=waiting.member.subject, deadline_s=deadline_s
    )


def _read(waiting: WaitingLine, names: Sequence[str], cwd: str, deadline_s: float) -> LookResult:
    pid = waiting.member.pid
    base: Dict[str, Any] = {"pid": pid, "file": waiting.file, "line": waiting.line}
    content, reason = read_locals(waiting.member, deadline_s)
    if content is None:
        return refused("unavailable", reason, **base)
    values = values_of(content, pid, waiting.file, names, waiting.function)
    known = {name: shown for name, value in values.items() if (shown := short(value)) is not None}
    found = {**base, "values": known}
    asked = next(
        (path for text in waiting.texts if (path := asked_path(text, values)) is not None), None
    )
    if asked is not None:
        whole = os.path.normpath(os.path.join(cwd, asked))
        found["path"] = {"path": whole, "exists": _exists(pid, whole)}
    return LookResult(found)


def read_locals(member: Member, deadline_s: float) -> Tuple[Optional[bytes], str]:
    """What py-spy writes of a process with its locals, or None and the reason."""
    from trainprobe.collect import pyspy, stacks

    path, reason = pyspy.find()
    gone = procfs.gone(member.pid, member.started_ticks)
    if path is None or gone:
        return None, gone or reason
    now = procfs.stat(member.pid)
    # Who polls sleeps nearly always: then nothing has to stop for the look.
    sleeps = now is not None and now.state != "R"
    options = ["-lll", "--nonblocking"] if sleeps else ["-lll"]
    ran = stacks.dump(path, member.pid, deadline_s, options)
    if ran.ended.how != "exited" or ran.ended.code != 0:
        return None, f"py-spy did not tell the locals of process {member.pid}"
    return ran.stdout, ""


def values_of(
    content: bytes, pid: int, file: str, names: Sequence[str], function: str = ""
) -> Dict[str, object]:
    """The scalar locals of these names in the innermost frame of `file`, and of `function` where
    that is given, on the main thread.
    """
    for (place, name), shown in locals_of(content, pid):
        if place == file and (not function or name == function):
            return scalars(shown, names)
    return {}


def locals_of(content: bytes, pid: int) -> List[Tuple[Tuple[str, str], Dict[str, str]]]:
    """File, function and locals of each frame of the main thread, the innermost first; the values
    are as py-spy shows them.
    """
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError):
        return []
    threads = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    alone = threads[0] if len(threads) == 1 else {}
    main = next((row for row in threads if row.get("os_thread_id") == pid), alone)
    frames = main.get("frames")
    return [
        (
            (cell_file(str(row.get("filename"))), str(row.get("name"))),
            {
                str(local.get("name")): str(local.get("repr"))
                for local in row.get("locals") or ()
                if isinstance(local, dict)
            },
        )
        for row in (frames if isinstance(frames, list) else ())
        if isinstance(row, dict)
    ]


def scalars(shown: Mapping[str, str], names: Sequence[str]) -> Dict[str, object]:
    """The values of these names that are numbers, booleans, None or texts."""
    found: Dict[str, object] = {}
    for name in names:
        try:
            value = ast.literal_eval(shown.get(name, ""))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, Scalar):
            found[name] = value
    return found


def short(value: object) -> Optional[str]:
    """A value as Python writes it; None of a text that is too long to be shown."""
    if isinstance(value, str) and (len(value) > TEXT_CAP or "\n" in value):
        return None
    return repr(value)


def _exists(pid: int, path: str) -> Optional[bool]:
    """By one stat in the namespace of the process; None where another host might have to answer,
    or it may not be asked.
    """
    from trainprobe.system.answering import silent

    rows = mount_table.table_of(pid)
    points = [row for row in rows if path == row.point or path.startswith(_folder(row.point))]
    nearest = max(points, key=lambda row: len(row.point), default=None)
    if nearest is None or nearest.fstype not in (*mount_table.LOCAL, "overlay"):
        return None
    if silent(f"/proc/{pid}/root{path}"):  # a link on the way may lead elsewhere
        return None
    try:
        os.lstat(f"/proc/{pid}/root{path}")
    except FileNotFoundError:
        return False if os.path.isdir(f"/proc/{pid}/root/") else None
    except OSError:
        return None
    return True


def _folder(point: str) -> str:
    return point.rstrip("/") + "/"


def parse_awaited(record: Evidence) -> List[Fact]:
    data = record.data
    known: Dict[str, Any] = {
        "rank": record.subject.rank,
        "pid": fields.whole(data, "pid") or 0,
        "file": fields.text(data, "file"),
        "line": fields.whole(data, "line") or 0,
    }
    values: Mapping[str, Any] = fields.part(data, "values")
    found: List[Fact] = [
        fields.fact(AwaitedValue, record, {}, name=name, value=value, **known)
        for name, value in values.items()
        if isinstance(value, str)
    ]
    path = fields.part(data, "path")
    if fields.text(path, "path"):
        found.append(fields.fact(AwaitedPath, record, path, **known))
    return found


COLLECTOR = Collector(
    "awaited",
    None,
    deadline_s=2.0,
    source="py-spy --locals",
    rounds=(),
    parse=parse_awaited,
    facts=(AwaitedValue, AwaitedPath),
)
