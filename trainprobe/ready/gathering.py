"""The plan of `ready`: checks on every node at once, then traffic between pairs of nodes, then
ranks across nodes, as far as the time allows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError
from trainprobe.ladder.climb import climb
from trainprobe.ladder.planning import make_plan
from trainprobe.model.codec import to_json
from trainprobe.model.request import DiagnoseRequest
from trainprobe.nodes.fan_out import AT_ONCE, ask
from trainprobe.nodes.fan_out import KIND as ANSWER
from trainprobe.nodes.transports import is_local
from trainprobe.ready.case_folders import record_result
from trainprobe.ready.isolate import MEETING_PORT, Meeting, isolate
from trainprobe.ready.job_python import CHECK as START
from trainprobe.ready.local_checks import HARD_STOP_S, KIND, VALUES, CheckTask, run_checks
from trainprobe.ready.remote_checks import ACCEPT, CELL, COMMAND, task_line
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.overseer import tell
from trainprobe.system.run import run
from trainprobe.targets.interpreter import OF_THE_TOOL, choose, find
from trainprobe.targets.script import read

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.config import Settings
    from trainprobe.model.evidence import Evidence
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import ReadyRequest
    from trainprobe.nodes.transports import Way
    from trainprobe.site import Site

JUDGE_S = 4.0  # of the hard stop, for what comes after gathering
GRACE_S = 4.0  # beyond the hard stop, before this whole process is given up
WAY_S = 4.0  # for the way to a node and a Python there
LEAST_CHECKS_S = 6.0  # measured: the check programs of a node take 3 to 5 s
CHECKS_SHARE = 0.4  # of the time, where traffic between the nodes is tried too
LEAST_PAIRS_S = 5.0
# measured: four ranks on four nodes that share two processors meet in 14 to 20 s
LEAST_RUNGS_S = 25.0
# Of the time after the checks, kept for ranks across the nodes as long as all traffic passes.
RUNGS_SHARE = 0.3
PAIRS = "pairs"
MODULES, WRITABLE = "py.modules", "writable."
# The rungs that are climbed across nodes: always, where there are GPUs, and with a longer budget.
ALWAYS = ("gloo_control",)
ON_GPUS = ("basic_cuda", "single_gpu", "nccl_collectives")
WITH_TIME = ("import_memory",)
MOST_RANKS_EACH = 8
OPEN_S = 3.0  # for the script, where it can be read
END_S = 5.0  # for a climb to end what it has started when its time is over


@dataclass(frozen=True)
class _Asked:
    request: ReadyRequest
    way: Way
    case: Case
    around: Interruption
    fan_out: int | None = None


def stop_s(request: ReadyRequest) -> float:
    """The hard stop in seconds from the start: that of the budget, or `--timeout` if it is less."""
    return min(HARD_STOP_S[request.budget], request.timeout_s or HARD_STOP_S[request.budget])


def gather(
    request: ReadyRequest,
    way: Way,
    case: Case,
    site: Site,
    settings: Settings,
    progress: Progress,
    *,
    around: Interruption,
) -> None:
    """Record in `case` whatever can be learnt about the nodes in time. Raises Interrupted after
    Ctrl-C, once nothing of ours runs any more.

    `around` notices a signal between two parts of the plan.
    """
    began = time.monotonic()
    until = began + stop_s(request) - min(JUDGE_S, stop_s(request) / 5)
    alone = len(way.names) == 1 and way.by == "here"
    undone: list[tuple[str, str]] = []
    tell(
        within_s=stop_s(request) + GRACE_S,
        doing=f"checking {len(way.names)} nodes" if len(way.names) > 1 else "checking this node",
    )
    try:
        if alone:
            _here(
                _wanted(request, way, site, until - time.monotonic()), case, way.names[0], progress
            )
        else:
            checked = _there(
                _wanted(request, way, site, 0.0), way, case, until, progress, site.fan_out
            )
            undone += _between(
                _Asked(request, way, case, around, site.fan_out), checked, until, settings, progress
            )
        _raise_if_interrupted(case, around)
    finally:
        data = {
            "budget": request.budget,
            "slot": request.slot,
            "by": way.by,
            "nodes": list(way.names),
            "shell": next(filter(is_local, way.names), "") if way.by == "ssh" else "",
            "unseen": way.unseen,
            "scheduler": way.scheduler,
            "nproc": request.nproc or request.gpus or 0,
        }
        case.add(
            "ready",
            cell=CELL,
            source="trainprobe",
            data={**data, "undone": [{"id": name, "reason": reason} for name, reason in undone]},
        )


def _wanted(request: ReadyRequest, way: Way, site: Site, stop: float) -> CheckTask:
    admin = request.slot != "step"
    try:
        cwd = os.getcwd()
    except OSError:  # it was removed under us
        cwd = ""
    paths = (
        request.paths
        if len(way.names) == 1
        else tuple(dict.fromkeys((*request.paths, *((cwd,) if cwd else ()))))
    )
    nproc = request.nproc or request.gpus or 1
    python, surely = (sys.executable, True) if admin else _interpreter(request)
    variables: dict[str, str] = {
        "TRAINPROBE_NPROC": str(nproc),
        "TRAINPROBE_GPUS": str(request.gpus) if request.gpus else "",
        "TRAINPROBE_WORLD": str(nproc * len(way.names)),
        "TRAINPROBE_NODES": ",".join(way.names),
        "TRAINPROBE_SCRIPT": request.script,
        **(_modules(request.script, python, surely=surely) if request.script else {}),
        "TRAINPROBE_PATHS": ":".join(paths),
        "TRAINPROBE_THRESHOLDS": json.dumps(dict(site.thresholds)) if site.thresholds else "",
    }
    return CheckTask(
        budget=request.budget,
        slot=request.slot,
        stop_s=stop,
        interpreter=python,
        env={name: value for name, value in variables.items() if value},
        leave_out=site.leave_out,
        cwd="/" if admin else cwd,
    )


def _interpreter(request: ReadyRequest) -> tuple[str, bool]:
    """The Python of the job, and whether it surely is: the tool's own may stand in for it. One that
    the user names is started by the checks only: they say what is wrong.
    """
    if request.interpreter:
        return choose(request.interpreter)[0], True
    found = find(None, modules=())
    return found.path, found.chosen_by != OF_THE_TOOL


def _modules(path: str, python: str, *, surely: bool) -> dict[str, str]:
    """What the script imports, for the check of its modules. Where it may be another Python that
    runs it, the nodes are only compared.
    """
    # A child tries the file first: it may lie on a file system that hangs, or on the nodes alone.
    words = ("-I", "-S", "-c", "import sys; open(sys.argv[1], 'rb').close()", path)
    tried = run((sys.executable, *words), timeout_s=OPEN_S, kill_s=0.2, cwd="/")
    if tried.ended.code != 0:
        return {}
    found = read(path, python if os.access(python, os.X_OK) else sys.executable)
    needed = (*found.imports, *found.local) if surely else ()
    compared = (*found.optional, *(() if surely else (*found.imports, *found.local)))
    return {
        "TRAINPROBE_NEEDED_MODULES": ",".join(needed),
        "TRAINPROBE_OPTIONAL_MODULES": ",".join(compared),
    }


def _here(wanted: CheckTask, case: Case, name: str, progress: Progress) -> None:
    progress.note("Checking this node.")

    with Interruption() as interruption:
        run_checks(
            wanted, lambda result: record_result(case, result, name), lambda: interruption.asked
        )
    if interruption.asked:
        case.add("interrupted", source="signal", data={"phase": "ready", "cell": CELL})
        raise Interrupted


def _there(
    wanted: CheckTask, way: Way, case: Case, until: float, progress: Progress, fan_out: int | None
) -> tuple[str, ...]:
    """Run the checks on all nodes at once; return the nodes that gave results. A slow node delays
    no other node's results.
    """
    most_s = max(2.0, (until - time.monotonic()) * CHECKS_SHARE - WAY_S)
    turns = -(-len(way.names) // (fan_out or AT_ONCE))
    checks_s = (
        most_s if turns == 1 else min(most_s, max(LEAST_CHECKS_S, (most_s + WAY_S) / turns - WAY_S))
    )
    nodes = way.nodes([COMMAND], task_line(replace(wanted, stop_s=checks_s)), held=True)
    return ask(
        nodes,
        case,
        checks_s,
        progress,
        ACCEPT,
        "ready",
        patient=True,
        most_s=most_s + WAY_S,
        at_once=fan_out,
        overdue=lambda names: tell(overdue=list(names)),
    )


def _between(
    asked: _Asked, checked: tuple[str, ...], until: float, settings: Settings, progress: Progress
) -> list[tuple[str, str]]:
    """Traffic between the nodes that answered, then ranks across those that are good. Return
    what was not done, with the reason.
    """
    if len(checked) < 2:
        return []
    undone: list[tuple[str, str]] = []
    good = checked
    _raise_if_interrupted(asked.case, asked.around)
    tell(doing="trying the traffic between the nodes")
    left_s = until - time.monotonic()
    if left_s < LEAST_PAIRS_S:
        undone.append((PAIRS, f"no time for it: {max(left_s, 0):.0f} s were left"))
    else:
        port = _port(os.environ.get("MASTER_PORT", ""))
        at_once = min(asked.fan_out or AT_ONCE, AT_ONCE)
        folders = _written_by_all(asked.case, checked)
        meeting = Meeting(port=port, at_once=at_once, paths=folders)
        found = isolate(
            checked,
            asked.way,
            asked.case,
            asked.request.budget,
            until,
            progress,
            meeting=meeting,
            keep_s=_rungs_s(left_s),
        )
        at_fault = {node.host for node in found.nodes} | {
            end for link in found.links for end in (link.a, link.b)
        }
        at_fault |= {name for common in found.shared for name in common.hosts}
        at_fault |= _without_the_job(asked.case)
        good = tuple(name for name in checked if name not in at_fault)
        if len(good) < 2:
            why = "fewer than two nodes are left whose traffic passes"
            return [*undone, *((name, why) for name in rung_names(asked.request))]
    _raise_if_interrupted(asked.case, asked.around)
    tell(doing="trying ranks across the nodes")
    left_s = until - time.monotonic()
    if left_s < LEAST_RUNGS_S:
        return [
            *undone,
            *(
                (name, f"no time for it: {max(left_s, 0):.0f} s were left")
                for name in rung_names(asked.request)
            ),
        ]
    return undone + _climb_nodes(
        asked.request,
        replace(asked.way, names=good),
        good,
        asked.case,
        left_s=left_s,
        settings=settings,
        progress=progress,
    )


def _written_by_all(case: Case, nodes: Sequence[str]) -> tuple[str, ...]:
    """The named folders in which every node could write: the others have failed their check."""
    hosts: dict[str, set[str]] = {}
    for record in case.evidence:
        values = record.data.get("values", {}) if record.kind == VALUES else {}
        for name, value in values.items():
            if name.startswith(WRITABLE) and value == "yes":
                hosts.setdefault(name.removeprefix(WRITABLE), set()).add(record.subject.host)
    return tuple(folder for folder, found in hosts.items() if found >= set(nodes))


def _without_the_job(case: Case) -> set[str]:
    """The nodes that lack what its ranks are started with."""
    return {
        record.subject.host
        for record in case.evidence
        if record.kind == KIND
        for row in record.data.get("checks", ())
        if row["id"] in (START, MODULES) and row["state"] == "fail"
    }


def _port(text: str) -> int:
    """The job's own port where it is valid; the check of the launch plan reports an invalid one."""
    valid = text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 1 << 16
    return int(text) if valid else MEETING_PORT


def tell_findings(record: Evidence) -> None:
    """Pass to the parent process what failed or could not be measured, and which node has answered
    and which not: it reports that even if this process hangs later.
    """
    if record.kind == ANSWER and record.cell == CELL:
        if record.outcome in ("ok", "partial"):
            tell(answered=record.subject.host)
        else:
            tell(row={"node": to_json(replace(record, reason=record.reason[:250]))})
    rows = record.data.get("checks") if record.kind == KIND else None
    for row in rows if isinstance(rows, (list, tuple)) else ():
        if isinstance(row, Mapping) and row.get("state") in ("fail", "unknown"):
            tell(
                row={
                    "id": str(row.get("id"))[:60],
                    "state": row["state"],
                    "host": record.subject.host,
                    "says": str(row.get("says", ""))[:250],
                }
            )


def _raise_if_interrupted(case: Case, around: Interruption) -> None:
    if around.asked:
        case.add("interrupted", source="signal", data={"phase": "ready", "cell": CELL})
        raise Interrupted


def _rungs_s(left_s: float) -> float:
    """The part of the time left for ranks across the nodes: none where it would not suffice for
    both.
    """
    enough = left_s >= LEAST_RUNGS_S + 2 * LEAST_PAIRS_S
    return max(left_s * RUNGS_SHARE, LEAST_RUNGS_S) if enough else 0.0


def check_request(request: ReadyRequest) -> None:
    """Raise UsageError for options that contradict each other, before anything is started."""
    if request.slot != "step" and (request.nodes or request.script):
        raise UsageError(
            f"--slot {request.slot} looks at this node alone.", "Leave --nodes and --script out."
        )


def rung_names(request: ReadyRequest) -> tuple[str, ...]:
    """The rungs of a budget, in the order of the climb."""
    names = (*ALWAYS, *(ON_GPUS if request.gpus else ()))
    return names if request.budget == "quick" else (*WITH_TIME, *names)


def _climb_nodes(
    request: ReadyRequest,
    way: Way,
    nodes: Sequence[str],
    case: Case,
    *,
    left_s: float,
    settings: Settings,
    progress: Progress,
) -> list[tuple[str, str]]:
    """Climb the ladder with ranks on each of `nodes` for at most `left_s`; return the rungs that
    could not be climbed, with the reason. Raises Interrupted.
    """
    ranks = min(request.gpus or request.nproc or 1, MOST_RANKS_EACH)
    asked = DiagnoseRequest(
        nodes=tuple(nodes),
        nproc=None if request.gpus else ranks,
        gpus=ranks if request.gpus else None,
        interpreter=request.interpreter,
        only=rung_names(request),
        timeout_s=max(1.0, left_s - END_S),
        device="cuda" if request.gpus else "cpu",
    )
    try:
        plan = make_plan(asked, settings, way=way)
    except UsageError as error:
        return [(name, error.says) for name in rung_names(request)]
    if plan.interpreter.torch is None:
        reason = plan.interpreter.reason or "torch is not there"
        return [(name, reason) for name in rung_names(request)]
    # Pairs of nodes have been tried before, so only the whole size is climbed.
    whole = tuple(replace(rung, sizes=rung.sizes[-1:]) for rung in plan.rungs)
    climb(replace(plan, rungs=whole), case, progress, settings)
    return []
