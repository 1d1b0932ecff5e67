"""The plot of `ready`: the checks on every node at once, then traffic between pairs of nodes, then ranks across nodes, as far as the time goes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError
from trainprobe.nodes.asking import AT_ONCE, ask
from trainprobe.ready.far import ACCEPT, CELL, COMMAND, said
from trainprobe.ready.here import HARD_STOP_S, KIND, Wanted, run_checks
from trainprobe.ready.isolate import MEETING_PORT, Meeting, isolate
from trainprobe.ready.kept import put
from trainprobe.ready.rungs import climb_nodes, names_of
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.overseer import tell
from trainprobe.targets.interpreter import choose, find

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.config import Settings
    from trainprobe.model.evidence import Evidence
    from trainprobe.model.progress import Progress
    from trainprobe.model.request import ReadyRequest
    from trainprobe.nodes.way import Way
    from trainprobe.site import Site

JUDGE_S = 4.0  # of the hard stop, for what comes after gathering
GRACE_S = 4.0  # beyond the hard stop, before this whole process is given up
WAY_S = 4.0  # for the way to a node and a Python there
LEAST_CHECKS_S = 6.0  # measured: a node's programs are through in 3 to 5 s
CHECKS_SHARE = 0.4  # of the time, where the nodes' traffic is to be tried too
LEAST_PAIRS_S, LEAST_RUNGS_S = 5.0, 25.0  # measured: four ranks on four nodes that share two processors meet in 14 to 20 s; what is cut off tells nothing
RUNGS_SHARE = 0.3  # of what is left after the checks, kept for ranks across the nodes as long as the traffic passes
PAIRS = "pairs"


@dataclass(frozen=True)
class _Asked:
    request: ReadyRequest
    way: Way
    case: Case
    around: Interruption
    fan_out: int | None = None


def stop_s(request: ReadyRequest) -> float:
    """When all of it is over, in seconds from the start: the budget's hard stop, or what was asked for where that is less."""
    return min(HARD_STOP_S[request.budget], request.timeout_s or HARD_STOP_S[request.budget])


def gather(request: ReadyRequest, way: Way, case: Case, site: Site, settings: Settings, progress: Progress, *, around: Interruption) -> None:
    """Put all that can be learnt of the nodes within the time into `case`. Raises Interrupted after Ctrl-C, when nothing of ours runs any more.

    `around` hears a signal that comes between two parts of it.
    """
    began = time.monotonic()
    until = began + stop_s(request) - min(JUDGE_S, stop_s(request) / 5)
    alone = len(way.names) == 1 and way.by == "here"
    undone: list[tuple[str, str]] = []
    tell(within_s=stop_s(request) + GRACE_S, doing=f"checking {len(way.names)} nodes" if len(way.names) > 1 else "checking this node")
    try:
        if alone:
            _here(_wanted(request, way, site, until - time.monotonic()), case, way.names[0], progress)
        else:
            told = _there(_wanted(request, way, site, 0.0), way, case, until, progress, site.fan_out)
            undone += _between(_Asked(request, way, case, around, site.fan_out), told, until, settings, progress)
        _heard(case, around)
    finally:
        data = {"budget": request.budget, "slot": request.slot, "by": way.by, "nodes": list(way.names), "nproc": request.nproc or request.gpus or 0}
        case.add("ready", cell=CELL, source="trainprobe", data={**data, "undone": [{"id": name, "reason": reason} for name, reason in undone]})


def _wanted(request: ReadyRequest, way: Way, site: Site, stop: float) -> Wanted:
    admin = request.slot != "step"
    try:
        cwd = os.getcwd()
    except OSError:  # it was removed under us
        cwd = ""
    paths = request.paths if len(way.names) == 1 else tuple(dict.fromkeys((*request.paths, *((cwd,) if cwd else ()))))
    nproc = request.nproc or request.gpus or 1
    told: dict[str, str] = {
        "TRAINPROBE_NPROC": str(nproc),
        "TRAINPROBE_GPUS": str(request.gpus) if request.gpus else "",
        "TRAINPROBE_WORLD": str(nproc * len(way.names)),
        "TRAINPROBE_NODES": ",".join(way.names),
        "TRAINPROBE_SCRIPT": request.script,
        "TRAINPROBE_PATHS": ":".join(paths),
        "TRAINPROBE_THRESHOLDS": json.dumps(dict(site.thresholds)) if site.thresholds else "",
    }
    return Wanted(
        budget=request.budget,
        slot=request.slot,
        stop_s=stop,
        interpreter=sys.executable if admin else _interpreter(request),
        env={name: value for name, value in told.items() if value},
        leave_out=site.leave_out,
        cwd="/" if admin else cwd,
    )


def _interpreter(request: ReadyRequest) -> str:
    """One that was asked for is started by the checks alone: they say what is wrong with it."""
    return choose(request.interpreter)[0] if request.interpreter else find(None, modules=()).path


def _here(wanted: Wanted, case: Case, name: str, progress: Progress) -> None:
    progress.note("Checking this node.")

    with Interruption() as interruption:
        run_checks(wanted, lambda told: put(case, told, name), lambda: interruption.asked)
    if interruption.asked:
        case.add("interrupted", source="signal", data={"phase": "ready", "cell": CELL})
        raise Interrupted


def _there(wanted: Wanted, way: Way, case: Case, until: float, progress: Progress, fan_out: int | None) -> tuple[str, ...]:
    """The checks on all nodes at once; a node that takes its whole time holds up no other's findings. Return the nodes that told something."""
    most_s = max(2.0, (until - time.monotonic()) * CHECKS_SHARE - WAY_S)
    turns = -(-len(way.names) // (fan_out or AT_ONCE))
    checks_s = most_s if turns == 1 else min(most_s, max(LEAST_CHECKS_S, (most_s + WAY_S) / turns - WAY_S))
    nodes = way.nodes([COMMAND], said(replace(wanted, stop_s=checks_s)), held=True)
    return ask(nodes, case, checks_s, progress, ACCEPT, "ready", patient=True, most_s=most_s + WAY_S, at_once=fan_out)


def _between(asked: _Asked, told: tuple[str, ...], until: float, settings: Settings, progress: Progress) -> list[tuple[str, str]]:
    """Traffic between the nodes that answered, then ranks across those that are good. Return what was not done, with the reason."""
    if len(told) < 2:
        return []
    undone: list[tuple[str, str]] = []
    good = told
    _heard(asked.case, asked.around)
    tell(doing="trying the traffic between the nodes")
    left_s = until - time.monotonic()
    if left_s < LEAST_PAIRS_S:
        undone.append((PAIRS, f"no time for it: {max(left_s, 0):.0f} s were left"))
    else:
        port = _port(os.environ.get("MASTER_PORT", ""))
        meeting = Meeting(port=port, at_once=min(asked.fan_out or AT_ONCE, AT_ONCE))
        found = isolate(told, asked.way, asked.case, asked.request.budget, until, progress, meeting=meeting, keep_s=_kept_s(left_s))
        at_fault = {one.host for one in found.nodes} | {end for link in found.links for end in (link.a, link.b)}
        at_fault |= {name for common in found.shared for name in common.hosts}
        good = tuple(name for name in told if name not in at_fault)
        if len(good) < 2:
            why = "fewer than two nodes are left whose traffic passes"
            return [*undone, *((name, why) for name in names_of(asked.request))]
    _heard(asked.case, asked.around)
    tell(doing="trying ranks across the nodes")
    left_s = until - time.monotonic()
    if left_s < LEAST_RUNGS_S:
        return [*undone, *((name, f"no time for it: {max(left_s, 0):.0f} s were left") for name in names_of(asked.request))]
    return undone + climb_nodes(asked.request, replace(asked.way, names=good), good, asked.case, left_s=left_s, settings=settings, progress=progress)


def _port(given: str) -> int:
    """The job's own port where it is one; what is wrong with another is for the check of the launch plan to say."""
    return int(given) if given.isascii() and given.isdigit() and len(given) <= 5 and 0 < int(given) < 1 << 16 else MEETING_PORT


def tell_findings(record: Evidence) -> None:
    """Tell the process over us what failed or could not be measured: should we hang later on, it is said all the same."""
    rows = record.data.get("checks") if record.kind == KIND else None
    for row in rows if isinstance(rows, (list, tuple)) else ():
        if isinstance(row, Mapping) and row.get("state") in ("fail", "unknown"):
            tell(row={"id": str(row.get("id"))[:60], "state": row["state"], "host": record.subject.host, "says": str(row.get("says", ""))[:250]})


def _heard(case: Case, around: Interruption) -> None:
    if around.asked:
        case.add("interrupted", source="signal", data={"phase": "ready", "cell": CELL})
        raise Interrupted


def _kept_s(left_s: float) -> float:
    """What of the time left is for ranks across the nodes: nothing where it would not do for both."""
    return max(left_s * RUNGS_SHARE, LEAST_RUNGS_S) if left_s >= LEAST_RUNGS_S + 2 * LEAST_PAIRS_S else 0.0


def check_request(request: ReadyRequest) -> None:
    """Raise UsageError for what cannot be carried out, before anything is started."""
    if request.slot != "step" and (request.nodes or request.script):
        raise UsageError(f"--slot {request.slot} looks at this node alone.", "Leave --nodes and --script out.")
