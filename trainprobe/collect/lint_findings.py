"""What lint finds in the user's script before it is run. It reads in a child process with a
deadline: a large project must not delay the climb.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Tuple

from trainprobe.case import Case
from trainprobe.collect import cgroup
from trainprobe.collect.child_programs import HERE, run_child
from trainprobe.collect.collectors.source import Site
from trainprobe.collect.look_results import LookResult, record, refused, timed
from trainprobe.collect.members import host_subject
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.system.run import Ran, run

VERSIONS = os.path.join(HERE, "versions_child.py")
DEADLINE_S = 5.0
# Lines of what the script imports, the nearest first: a first turn that any machine ends in time,
# and one for most projects.
TURNS = (2_000, 20_000)
OUTPUT_CAP_BYTES = 4 * 2**20
LINT_NEEDS = (3, 10)
FILES_CAP = 8  # of those in which the ranks of a live job stand
# beside a live job, of address space: what all looks together may take
MEMORY_CAP_BYTES = 150 * 2**20


@dataclass(frozen=True)
class LintRequest:
    """What is to be read, and where it will run. Configuration files are looked for beside the
    script and in `cwd`.

    `python` is the interpreter whose packages count, empty where none does; `ranks` are those on
    this machine, None where that is not known.
    `others` are files that are read with the script, and `turns` how many lines of their imports,
    empty for TURNS. `as_started_here`: our own limits are those of the ranks.
    """

    script: str
    cwd: str
    python: str = ""
    ranks: Optional[int] = None
    others: Tuple[str, ...] = ()
    turns: Tuple[int, ...] = ()
    as_started_here: bool = True
    memory_bytes: Optional[int] = None


def look_with_lint(case: Case, asked: LintRequest, *, deadline_s: float = DEADLINE_S) -> Evidence:
    """Record one `lint` about a script."""
    return record(
        case,
        "lint",
        timed(lambda: read_with_lint(asked, deadline_s)),
        subject=JOB,
        cell="",
        source="source text",
    )


def look_with_lint_at_stacks(
    case: Case,
    cell: str,
    sites: Iterable[Site],
    *,
    cwd: str,
    began: Optional[float],
    deadline_s: float,
) -> Optional[Evidence]:
    """Record one `lint` about the user's files in which ranks stand, the script first; None where
    none of their lines is known.

    `began` is when the job started, in Unix time: what was changed since is not what runs. The
    job's own limits are not known here.
    """
    names = dict.fromkeys(
        os.path.join(cwd, site.file)
        for site in sites
        if site.file.endswith(".py") and is_user(Frame(site.function, site.file, site.line))
    )
    if not names:
        return None
    script, *others = list(names)[:FILES_CAP]
    asked = LintRequest(
        script,
        cwd if os.path.isdir(cwd) else "/",
        "",
        None,
        tuple(others),
        (TURNS[0],),
        as_started_here=False,
        memory_bytes=MEMORY_CAP_BYTES,
    )

    def look() -> LookResult:
        changed = [
            name for name in (script, *others) if began is not None and _changed_at(name) > began
        ]
        if changed:
            return refused(
                "unavailable",
                f"{os.path.basename(changed[0])} was changed after the job had started: lint would"
                " not read what runs",
                script=script,
            )
        if sys.version_info < LINT_NEEDS:
            return refused(
                "unavailable",
                f"lint needs Python {LINT_NEEDS[0]}.{LINT_NEEDS[1]}, and the tool runs with"
                f" {sys.version.split()[0]} here",
                script=script,
            )
        return read_with_lint(asked, deadline_s)

    return record(
        case, "lint", timed(look), subject=host_subject(), cell=cell, source="source text"
    )


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0  # the look says why it cannot be read


def read_with_lint(asked: LintRequest, deadline_s: float = DEADLINE_S) -> LookResult:
    ends = time.monotonic() + deadline_s
    limits = _limits() if asked.as_started_here else {"cpus": None, "descriptors": None}
    told = {
        "script": asked.script,
        "others": asked.others,
        "turns": asked.turns or TURNS,
        "versions": _versions(asked.python, deadline_s / 2),
        "ranks": asked.ranks,
    }
    told |= {"cpu_s": math.ceil(deadline_s) + 1, "memory_bytes": asked.memory_bytes, **limits}
    left_s = max(0.1, ends - time.monotonic())
    ran = run_child(
        "lint_child",
        timeout_s=left_s,
        cwd=asked.cwd,
        input=json.dumps(told).encode(),
        site=True,
        kill_s=2.0,
        output_cap_bytes=OUTPUT_CAP_BYTES,
    )
    return understand(ran, asked.script, deadline_s)


def _limits() -> Dict[str, Any]:
    """The processors and the open files that a rank started here has, None where they are not
    limited or not known.
    """
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    now = cgroup.snapshot(cgroup.find())
    cpus = len(os.sched_getaffinity(0))
    if now is not None and now.cpu_quota:
        cpus = min(cpus, math.ceil(now.cpu_quota))
    return {"cpus": cpus, "descriptors": None if soft == resource.RLIM_INFINITY else soft}


def _versions(python: str, deadline_s: float) -> Optional[Dict[str, str]]:
    """The versions of packages in that Python, None for the one that runs this tool: the child
    knows its own.
    """
    if python == sys.executable:
        return None
    if not python:
        return {}
    try:
        told = json.loads(run([python, VERSIONS], timeout_s=deadline_s, cwd="/").stdout)
    except (ValueError, RecursionError):
        return {}
    return (
        {str(name): str(version) for name, version in told.items()}
        if isinstance(told, dict)
        else {}
    )


def understand(ran: Ran, script: str, deadline_s: float) -> LookResult:
    """Turn the child's answer into a look: what the last turn that it ended has found."""
    data: Dict[str, Any] = {
        "script": script,
        "files": 0,
        "lines": 0,
        "left_out": "",
        "findings": [],
    }
    told = _last_turn(ran.stdout)
    late = ran.ended.how in ("timed_out", "unkillable")
    if told is None:
        if late:
            return refused(
                "timed_out",
                f"reading {os.path.basename(script)} did not end within {deadline_s:g} s",
                **data,
            )
        if ran.ended.how == "not_started":
            return refused("unavailable", f"it could not be started: {ran.ended.reason}", **data)
        how = f"signal {ran.ended.signal}" if ran.ended.signal else f"exit status {ran.ended.code}"
        return refused(
            "crashed", f"the program that reads {os.path.basename(script)} ended with {how}", **data
        )
    not_read = [row for row in told["not_read"] if isinstance(row, dict)]
    own = next(
        (
            str(row.get("reason"))
            for row in not_read
            if row.get("file") == script and not row.get("rule")
        ),
        "",
    )
    if own:
        return refused("unavailable", f"{os.path.basename(script)}: {own}", **data)
    data.update({name: told[name] for name in ("files", "lines", "findings")})
    data["left_out"] = _left_out(told, not_read, deadline_s if late else None)
    return LookResult(data, "partial", data["left_out"]) if data["left_out"] else LookResult(data)


def _left_out(told: Dict[str, Any], not_read: List[Dict[str, Any]], late_s: Optional[float]) -> str:
    """What was not read, as sentences; empty where all was."""
    says = []
    if told["cut"]:
        why = f"in {late_s:g} s" if late_s is not None else "at once"
        says.append(f"Only the {told['lines']:,} lines nearest to the script were read {why}.")
    if not_read:
        first = not_read[0]
        more = f" (and {len(not_read) - 1} more)" if len(not_read) > 1 else ""
        says.append(
            f"{os.path.basename(str(first.get('file') or '')) or 'A part'} was left out{more}:"
            f" {first.get('reason')}"
        )
    return " ".join(says)


def _last_turn(stdout: bytes) -> Optional[Dict[str, Any]]:
    """The last whole line that is an answer."""
    for line in reversed(stdout.splitlines()):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        lists, numbers = ("findings", "not_read"), ("files", "lines", "cut")
        if (
            isinstance(told, dict)
            and all(isinstance(told.get(name), list) for name in lists)
            and all(isinstance(told.get(name), int) for name in numbers)
        ):
            return told
    return None
