"""`--deep`: have each rank write the flight recorder that it keeps anyway. Runs code inside the
job, so it is only done when asked for.

A thread of the process that sleeps is stopped for under a millisecond and starts another, which
runs `deep_payload.py` and ends (`system/borrowed_thread.py`). It is refused wherever it could be in
the way, each time with a reason.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from trainprobe.case import Case
from trainprobe.collect import deep_payload, own_thread, permission, procfs, remote_exec
from trainprobe.collect.deep_refusals import environment, why_not
from trainprobe.collect.dump_files import READ_S, read_dump_content
from trainprobe.collect.exchange import Exchange
from trainprobe.collect.look_results import LookResult, record, refused, timed
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence

DUMP_CAP_BYTES, REPORT_CAP_BYTES = 64 * 2**20, 2**20
PER_RANK_S = 4.0


class Dump(NamedTuple):
    """A rank's dump: `content` is a pickle or JSON, as `form` says; `backend` "" is all."""

    content: bytes
    form: str
    backend: str


def look_deep(
    case: Case,
    cell: str,
    members: Sequence[Member],
    *,
    deadline_s: float = 30.0,
    progress: Optional[Callable[[Member], None]] = None,
) -> List[Evidence]:
    """One `deep` record for each rank among `members`, one rank after the other, and a
    `flight_recorder` record for each dump.

    `progress` is told before each rank. A rank for which no time is left is recorded as such.
    """
    ends, records = time.monotonic() + deadline_s, []
    for member in (member for member in members if member.role == "rank"):
        if progress is not None:
            progress(member)
        left_s = min(PER_RANK_S, ends - time.monotonic())
        dumps: List[Dump] = []
        result = timed(partial(read_deep, member, case.evidence, left_s, dumps))
        method = str(result.data.get("method", ""))
        records.append(
            record(case, "deep", result, subject=member.subject, cell=cell, source=method)
        )
        records += [_keep(case, cell, member, dump, result) for dump in dumps]
    return records


def read_deep(
    member: Member, evidence: Sequence[Evidence], deadline_s: float, dumps: List[Dump]
) -> LookResult:
    """Have one rank write its trace into `dumps`. `evidence`: the earlier looks."""
    pid = member.pid
    base: Dict[str, Any] = {"pid": pid, "rank": member.rank, "method": ""}
    if deadline_s <= 0.3:
        late = f"no time was left to ask process {pid} for its flight recorder"
        return refused("timed_out", late, **base)
    reason = why_not(member, evidence)
    if reason:
        return refused("unavailable", reason, **base)
    ends = time.monotonic() + deadline_s
    try:
        with Exchange(pid) as exchange:
            return _ask(member, exchange, ends, base, dumps)
    except PermissionError:
        return refused("denied", permission.why_refused(pid), **base)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return refused("unavailable", f"process {pid} can hand over no file: {why}", **base)


def _ask(
    member: Member, exchange: Exchange, ends: float, base: Dict[str, Any], dumps: List[Dump]
) -> LookResult:
    pid = member.pid
    # What comes too late does nothing: the thread may have to wait for the interpreter longer than
    # we wait for it.
    until = time.time() + max(0.0, ends - time.monotonic())
    line = _line(exchange.path, until)
    exchange.put("payload.py", _payload())
    environ = "\0".join(f"{name}={value}" for name, value in environment(pid).items())
    if not remote_exec.suits(
        remote_exec.python_version(pid), remote_exec.main_thread_runs(pid), environ
    ):
        base["method"] = "sys.remote_exec"
        # The request stays with the process, so the file must stay until it was run; `UNTIL` makes
        # it harmless after that.
        exchange.left = True
        exchange.put("line.py", line)
        failed = remote_exec.ask(
            pid, f"{exchange.path}/line.py", max(0.3, (ends - time.monotonic()) / 2)
        )
        exchange.left = not failed
        if failed:
            return refused("unavailable", failed, **base)
    else:
        base["method"] = "own-thread"
        borrowed = own_thread.start(pid, line, max(0.0, (ends - time.monotonic()) / 2))
        base["paused_s"] = round(borrowed.stopped_s, 6)
        if borrowed.refused:
            texts = ("refused to let us trace", "map of process")
            if any(text in borrowed.refused for text in texts):
                return refused("denied", permission.why_refused(pid), **base)
            return refused("unavailable", borrowed.refused, **base)
    while True:
        content = exchange.get("said", REPORT_CAP_BYTES)
        if content is not None:
            exchange.left = False
            return _understand(content, exchange, base, dumps)
        gone = procfs.gone(pid, member.started_ticks)
        if gone:
            return refused("unavailable", f"{gone}, during the look", **base)
        if time.monotonic() > ends:
            return refused(
                "timed_out",
                f"process {pid} did not come to run it; what was started there ends by itself and"
                " does nothing",
                **base,
            )
        time.sleep(0.005)


def _understand(
    content: bytes, exchange: Exchange, base: Mapping[str, Any], dumps: List[Dump]
) -> LookResult:
    try:
        report = json.loads(content)
        data = {
            **base,
            **{name: report.get(name) for name in ("torch", "ran_s", "dumps", "tried", "groups")},
            "rank_said": report.get("rank"),
        }
        for row in report["dumps"]:
            name = str(row["file"])
            dump = exchange.get(name, DUMP_CAP_BYTES) if name.isalnum() else None
            if dump is not None:
                dumps.append(Dump(dump, str(row.get("format", "")), str(row.get("backend", ""))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        why = f"the answer of process {base['pid']} cannot be understood"
        return refused("crashed", why, **base)
    if not dumps:
        errors = [str(row.get("error", "")) for row in data["tried"] or () if isinstance(row, dict)]
        why = errors[-1] if errors else "it is empty"
        reason = f"process {base['pid']} has no flight recorder to write: {why}"
        return refused("unavailable", reason, **data)
    return LookResult(data)


def _keep(case: Case, cell: str, member: Member, dump: Dump, result: LookResult) -> Evidence:
    """Record the dump and keep a copy. The rank's groups complete it."""
    began, clock = time.time(), time.monotonic()
    name = f"deep.rank{member.rank}.{dump.backend or 'all'}.{dump.form}"
    file = case.keep_file(name, dump.content)
    read = read_dump_content(dump.content, clock + READ_S)
    data: Dict[str, Any] = {
        "rank": member.rank,
        "path": "",
        "bytes": len(dump.content),
        "written_at": began,
        **read.dump,
    }
    if read.broken:
        why = f"the dump that process {member.pid} wrote cannot be used: {read.broken}"
        look = refused("partial", why, **data)
    else:
        rows = result.data.get("groups") or ()
        groups = [row for row in rows if isinstance(row, dict) and row.get("ranks")]
        names = {row.get("name") for row in groups}
        data["groups"] = [row for row in data["groups"] if row["name"] not in names] + groups
        look = LookResult(data)
    look = dataclasses.replace(look, source="deep", files=(file,))
    look = look.at(began, time.monotonic() - clock)
    return record(case, "flight_recorder", look, subject=member.subject, cell=cell)


def _line(folder: str, until: float) -> bytes:
    """The code to run: the payload in a dictionary of its own. It never raises."""
    inner = (
        f"with open({folder + '/payload.py'!a}) as f: exec(f.read(), {{'FOLDER': {folder!a},"
        f" 'UNTIL': {until!r}}})"
    )
    return f"try:\n exec({inner!a}, {{}})\nexcept BaseException: pass\n".encode()


def _payload() -> bytes:
    with open(os.path.splitext(deep_payload.__file__)[0] + ".py", "rb") as file:
        return file.read()
