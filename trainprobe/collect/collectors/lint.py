"""Lint of the user's script, in a child process with a deadline: a project may be large."""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple

from trainprobe.collect import cgroup
from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.collectors.source import Site
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.subjects import JOB
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.system.run import Ran

DEADLINE_S = 5.0
END_S = 3.0  # to end the child after its deadline, and to read what it wrote until then
# Lines of what the script imports, the nearest first: a first turn that any machine ends in time,
# and one for most projects.
TURNS = (2_000, 20_000)
# The start of a process is known to the second only, as the boot is (`btime` of /proc/stat).
CLOCK_S = 1.0
OUTPUT_CAP_BYTES = 4 * 2**20
LINT_NEEDS = (3, 10)
TEXT_CAP = 600
FINDINGS_CAP = 200  # each is compared with every frame of the suspects
FILES_CAP = 8  # of those in which the ranks of a live job stand
MEMORY_CAP_BYTES = 150 * 2**20  # beside a live job, of address space


@dataclass(frozen=True)
class LintFinding(Fact):
    """One pattern in source. `cause` is the id that it would become, `rule` the pattern,
    `confidence` from 0 to 1.

    `span` are the first and the last line of the code that it is about, 0 where that is `line`
    alone; `reaches` are file and line of the call that it leads to. `says` describes the code,
    `fix` the rewrite, empty where lint knows none.
    """

    cause: str = ""
    rule: str = ""
    file: str = ""
    line: int = 0
    says: str = ""
    why: str = ""
    confidence: float = 0.0
    fix: str = ""
    span: Tuple[int, int] = (0, 0)
    reaches: Tuple[str, int] = ("", 0)

    @property
    def where(self) -> str:
        """`train.py:88`."""
        base = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{base}:{self.line}" if self.line > 0 else base


@dataclass(frozen=True)
class LintRead(Fact):
    """How much lint read of `script` and its imports; `left_out` says what it did not."""

    script: str = ""
    files: int = 0
    lines: int = 0
    left_out: str = ""


@dataclass(frozen=True)
class LintRequest:
    """What is to be read, and where it will run. Configuration files are looked for beside the
    script and in `cwd`.

    `python` is the interpreter whose packages count, empty where none does; `ranks` are those on
    this machine, None where that is not known. `others` are files that are read with the script,
    and `turns` how many lines of their imports, empty for TURNS. `as_started_here`: our own limits
    are those of the ranks.
    """

    script: str
    cwd: str
    python: str = ""
    ranks: Optional[int] = None
    others: Tuple[str, ...] = ()
    turns: Tuple[int, ...] = ()
    as_started_here: bool = True
    memory_bytes: Optional[int] = None


def look_with_lint(case: Case, request: LintRequest, *, deadline_s: float = DEADLINE_S) -> Evidence:
    """Record one `lint` about a script."""

    def look() -> LookResult:
        return replace(read_with_lint(request, deadline_s), subject=JOB)

    return record_look(case, COLLECTOR, look, cell="", deadline_s=deadline_s + END_S)[0]


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

    `began` is when the job started, in Unix time: a file that was changed since is not what runs.
    The job's own limits are not known here.
    """
    from trainprobe.system.answering import silent

    names = dict.fromkeys(
        os.path.join(cwd, site.file)
        for site in sites
        if site.file.endswith(".py") and is_user(Frame(site.function, site.file, site.line))
    )
    if not names:
        return None
    names = {name: None for name in list(names)[:FILES_CAP] if not silent(name)}
    if not names:
        return None
    script, *others = names
    request = LintRequest(
        script,
        cwd if not silent(cwd) and os.path.isdir(cwd) else "/",
        others=tuple(others),
        turns=(TURNS[0],),
        as_started_here=False,
        memory_bytes=MEMORY_CAP_BYTES,
    )

    def look() -> LookResult:
        changed = [
            name
            for name in (script, *others)
            if began is not None and _changed_at(name) > began + CLOCK_S
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
        return read_with_lint(request, deadline_s)

    return record_look(case, COLLECTOR, look, cell=cell, deadline_s=deadline_s + END_S)[0]


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0  # the look says why it cannot be read


def read_with_lint(request: LintRequest, deadline_s: float = DEADLINE_S) -> LookResult:
    from trainprobe.collect.child_programs import run_child

    ends = time.monotonic() + deadline_s
    limits = _limits() if request.as_started_here else {"cpus": None, "descriptors": None}
    question = {
        "script": request.script,
        "others": request.others,
        "turns": request.turns or TURNS,
        "versions": _versions(request.python, deadline_s / 2),
        "ranks": request.ranks,
        "cpu_s": math.ceil(deadline_s) + 1,
        "memory_bytes": request.memory_bytes,
        **limits,
    }
    ran = run_child(
        "lint_child",
        timeout_s=max(0.1, ends - time.monotonic()),
        cwd=request.cwd,
        input=json.dumps(question).encode(),
        site=True,
        kill_s=2.0,
        output_cap_bytes=OUTPUT_CAP_BYTES,
    )
    return understand(ran, request.script, deadline_s)


def _limits() -> Dict[str, Any]:
    """CPUs and open files of a rank started here; None where not limited or not known."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    now = cgroup.snapshot(cgroup.find())
    cpus = len(os.sched_getaffinity(0))
    if now is not None and now.cpu_quota:
        cpus = min(cpus, math.ceil(now.cpu_quota))
    return {"cpus": cpus, "descriptors": None if soft == resource.RLIM_INFINITY else soft}


def _versions(python: str, deadline_s: float) -> Optional[Dict[str, str]]:
    """The versions of packages in that Python; None for ours, which the child reads itself."""
    from trainprobe.collect.child_programs import HERE
    from trainprobe.system.run import run

    if python == sys.executable:
        return None
    if not python:
        return {}
    program = os.path.join(HERE, "versions_child.py")
    try:
        versions = json.loads(run([python, program], timeout_s=deadline_s, cwd="/").stdout)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(versions, dict):
        return {}
    return {str(name): str(version) for name, version in versions.items()}


def understand(ran: Ran, script: str, deadline_s: float) -> LookResult:
    """Turn the child's answer into a look: what the last turn that it ended has found."""
    name = os.path.basename(script)
    data: Dict[str, Any] = {
        "script": script,
        "files": 0,
        "lines": 0,
        "left_out": "",
        "findings": [],
    }
    answer = _last_turn(ran.stdout)
    late = ran.ended.how in ("timed_out", "unkillable")
    if answer is None and late:
        reason = f"reading {name} did not end within {deadline_s:g} s"
        return refused("timed_out", reason, **data)
    if answer is None and ran.ended.how == "not_started":
        return refused("unavailable", f"it could not be started: {ran.ended.reason}", **data)
    if answer is None:
        how = f"signal {ran.ended.signal}" if ran.ended.signal else f"exit status {ran.ended.code}"
        return refused("crashed", f"the program that reads {name} ended with {how}", **data)
    not_read = [row for row in answer["not_read"] if isinstance(row, dict)]
    for row in not_read:
        if row.get("file") == script and not row.get("rule") and row.get("reason"):
            return refused("unavailable", f"{name}: {row['reason']}", **data)
    data.update({field: answer[field] for field in ("files", "lines", "findings")})
    data["left_out"] = _left_out(answer, not_read, deadline_s if late else None)
    return LookResult(data, "partial", data["left_out"]) if data["left_out"] else LookResult(data)


def _left_out(
    answer: Dict[str, Any], not_read: List[Dict[str, Any]], late_s: Optional[float]
) -> str:
    """What was not read, as sentences; empty where all was."""
    sentences = []
    if answer["cut"]:
        why = f"in {late_s:g} s" if late_s is not None else "at once"
        sentences.append(
            f"Only the {answer['lines']:,} lines nearest to the script were read {why}."
        )
    if not_read:
        first = not_read[0]
        more = f" (and {len(not_read) - 1} more)" if len(not_read) > 1 else ""
        sentences.append(
            f"{os.path.basename(str(first.get('file') or '')) or 'A part'} was left out{more}:"
            f" {first.get('reason')}"
        )
    return " ".join(sentences)


def _last_turn(stdout: bytes) -> Optional[Dict[str, Any]]:
    """The last whole line that is an answer."""
    for line in reversed(stdout.splitlines()):
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            continue
        lists, numbers = ("findings", "not_read"), ("files", "lines", "cut")
        if (
            isinstance(answer, dict)
            and all(isinstance(answer.get(name), list) for name in lists)
            and all(isinstance(answer.get(name), int) for name in numbers)
        ):
            return answer
    return None


def parse(record: Evidence) -> List[Fact]:
    data = record.data
    read = fields.fact(LintRead, record, left_out=fields.text(data, "left_out", cap=TEXT_CAP))

    def finding(row: Mapping[str, Any]) -> Fact:
        texts = {name: fields.text(row, name, cap=TEXT_CAP) for name in ("says", "why", "fix")}
        cause = fields.text(row, "id")
        if not cause or not texts["says"]:
            raise fields.UnreadableError("a finding without a cause or a description")
        return fields.fact(
            LintFinding,
            record,
            row,
            cause=cause,
            line=max(0, fields.whole(row, "line") or 0),
            confidence=min(1.0, max(0.0, fields.number(row, "confidence") or 0.0)),
            span=_span(row.get("span")),
            reaches=_reaches(row.get("reaches")),
            **texts,
        )

    return [read, *fields.each(fields.items(data, "findings")[:FINDINGS_CAP], finding)]


def _span(value: Any) -> Tuple[int, int]:
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(line, int) for line in value)
        and 0 < value[0] <= value[1]
    ):
        return value[0], value[1]
    return 0, 0


def _reaches(value: Any) -> Tuple[str, int]:
    if isinstance(value, list) and len(value) == 2:
        file, line = value
        if isinstance(file, str) and isinstance(line, int) and line > 0:
            return file[: fields.TEXT_CAP], line
    return "", 0


COLLECTOR = Collector(
    "lint",
    None,
    deadline_s=DEADLINE_S,
    source="source text",
    rounds=(),
    parse=parse,
    facts=(LintFinding, LintRead),
)
