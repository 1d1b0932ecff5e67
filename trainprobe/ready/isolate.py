"""Trying nodes in pairs: rounds of small real traffic, each group by fresh processes on its nodes, until the search has its answer or the time is over."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainprobe import isolation
from trainprobe.isolation.sides import judged, side_of
from trainprobe.nodes.asking import AT_ONCE
from trainprobe.nodes.probing import probe_on
from trainprobe.system.interruption import Interrupted, Interruption

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.isolation import Plan, Round, Try, Verdict
    from trainprobe.model.progress import Progress
    from trainprobe.nodes.probing import Probed
    from trainprobe.nodes.way import Way

KIND, CELL, PROGRAM = "pair", "pairs", "node_pair"
# Where the members listen: a port of each part of the range, most of them where Linux takes those of outgoing connections and gloo and NCCL
# those of their own (net.ipv4.ip_local_port_range, 32768 to 60999 by default).
PORT_RANGES = ((2000, 9999), (10000, 19999), (20000, 32767), *((start, start + 3499) for start in range(32768, 60768, 3500)), (61000, 65535))
MEETING_PORT = 29500
MEET_S = {"quick": 5.0, "standard": 8.0, "deep": 15.0}
AFTER_S = 8.0  # for ports that do not answer, tried three times; where all is well a member is through in 2 s
TORCH_S = {"quick": 20.0, "standard": 45.0, "deep": 90.0}  # torch has to be imported first
FEW, SPARE_S = 8, 10.0  # nodes all of whose pairs are tried, with so much time left before each further round
LEAST_S = 4.0  # with less time left no round is begun
WAY_S = 4.0


@dataclass(frozen=True)
class Meeting:
    """How the members meet: at `addresses`, by name where there is none; `port` is the job's own, tried beside others. `rails` is the number of local ranks to try apart, with NCCL.

    `plan` is what to try, by default what the budget allows. `at_once` is how many nodes are asked at the same time.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    port: int = MEETING_PORT
    rails: int = 0
    plan: Plan | None = None
    at_once: int = AT_ONCE


def isolate(  # noqa: PLR0913 - one parameter per way to bound it
    nodes: Sequence[str],
    way: Way,
    case: Case,
    budget: str,
    deadline: float,
    progress: Progress,
    *,
    arm: str = "tcp",
    python: str = "",
    meeting: Meeting | None = None,
    keep_s: float = 0.0,
) -> Verdict:
    """Look for nodes and links at fault among `nodes` and return what was found; each group tried is a `pair` record in `case`, and a last one says what was not.

    `deadline` is of time.monotonic, and no round is begun that could not end by then. The last `keep_s` before it are left alone as long as all is well:
    a failure that was not tried again names nobody, and is worth more than what comes after.
    `python` runs the members, the tool's own where it is empty; arms gloo and nccl need torch in it.
    Raises Interrupted after Ctrl-C, with what was learnt until then in the case.
    """
    meeting = meeting or Meeting()
    asked = meeting.plan or plan_of(budget, arm, len(nodes), meeting.rails)
    search = _Search(way, case, budget, meeting, python)
    last, deadline = deadline, deadline - keep_s
    left: tuple[str, ...] = ()
    spare = False
    with Interruption() as interruption:
        while True:
            following = isolation.next_round(search.history, nodes, asked)
            if any(one.outcome != "passed" for one in search.history) or (search.history and _settles(following)):
                deadline = last
            if isinstance(following, isolation.Verdict):
                left = following.left
                more = _more(asked, len(nodes), deadline - time.monotonic())
                if more == asked or left:
                    break
                asked, spare = more, True
                continue
            if spare and following.further and deadline - time.monotonic() < SPARE_S:
                break  # beyond what was asked for
            if interruption.asked or deadline - time.monotonic() < LEAST_S:
                left = (f"{following.why}: {len(following.groups)} groups, {'interrupted' if interruption.asked else 'the time was over'}",)
                break
            members = sum(len(group) for group in following.groups)
            progress.note(f"Round {search.round + 1} of pairs: {following.why} ({members} nodes, {following.arm}).")
            left = search.tried(following, deadline, interruption)
            if left:
                break
    verdict = isolation.conclude(search.history, nodes, left)
    left = verdict.left
    data = {"done": True, "nodes": list(nodes), "tried": verdict.tried, "left": list(left), "arm": asked.arm}
    case.add(KIND, cell=CELL, source=PROGRAM, outcome="partial" if left else "ok", reason="; ".join(left), data=data)
    if interruption.asked:
        raise Interrupted
    return verdict


def _settles(following: Round | Verdict) -> bool:
    """Is something open that this round settles? A slow pair has passed by itself, and is open all the same."""
    return isinstance(following, isolation.Round) and following.phase == "pairs" and not following.further


def _more(plan: Plan, nodes: int, left_s: float) -> Plan:
    """Where time is left over and the nodes are few, all pairs: a bad link that no round has met is found by none."""
    return replace(plan, breadth=max(plan.breadth, isolation.rounds_for_all(nodes))) if nodes <= FEW and left_s >= SPARE_S else plan


def plan_of(budget: str, arm: str, nodes: int, rails: int = 0) -> Plan:
    """How much is tried within a budget: more links, and more repetitions for what shows at times only, the more time there is."""
    breadth = {"quick": 2, "standard": min(max(2, nodes - 1), 7), "deep": min(max(2, nodes - 1), 15)}.get(budget, 2)
    repeats = {"deep": 3}.get(budget, 1)
    again = {"standard": 3, "deep": 6}.get(budget, 2)
    return isolation.Plan(arm, breadth=breadth, repeats=repeats, again=again, ladder=arm != "tcp" and budget != "quick", rails=rails if arm == "nccl" else 0)


class _Search:
    """The rounds so far. Ports and token are new for each group and try, so that nobody meets what an earlier try has left."""

    def __init__(self, way: Way, case: Case, budget: str, meeting: Meeting, python: str) -> None:
        self.history: list[Try] = []
        self.round = 0
        self._way, self._case, self._meeting, self._python = way, case, meeting, python
        self._meet_s, self._torch_s = MEET_S.get(budget, MEET_S["quick"]), TORCH_S.get(budget, TORCH_S["quick"])
        self._random = random.Random(secrets.token_bytes(8))

    def tried(self, following: Round, deadline: float, interruption: Interruption) -> tuple[str, ...]:
        """Try all groups of the round, as many at once as nodes can be asked at once. Return what there was no time for."""
        self.round += 1
        waiting = list(following.groups)
        while waiting:
            now: list[tuple[str, ...]] = [waiting.pop(0)]
            while waiting and sum(map(len, now)) + len(waiting[0]) <= self._meeting.at_once:
                now.append(waiting.pop(0))
            left_s = deadline - time.monotonic()
            if left_s < LEAST_S or interruption.asked:
                return (f"{following.why}: {len(now) + len(waiting)} of {len(following.groups)} groups",)
            self._at_once(now, following, left_s, interruption)
        return ()

    def _at_once(self, groups: Sequence[tuple[str, ...]], following: Round, left_s: float, interruption: Interruption) -> None:
        meet_s = min(self._meet_s if following.arm == "tcp" else self._torch_s, max(1.5, left_s * 0.4))
        end_s = min(meet_s + AFTER_S, left_s - 1.0) if following.arm == "tcp" else min(2 * meet_s, left_s - 1.0)
        environs: dict[str, dict[str, str]] = {}
        for group in groups:
            told = self._told(group, following, meet_s, end_s)
            for name in group:
                environs[name] = {"TRAINPROBE_PAIR": json.dumps({**told, "me": name})}
        probed = probe_on(self._way, environs, PROGRAM, end_s, interruption, python=self._python, way_s=max(0.5, min(WAY_S, left_s - end_s)))
        if interruption.asked:
            return  # members that were ended show nothing
        for group in groups:
            self._keep(group, following, probed)

    def _told(self, group: Sequence[str], following: Round, meet_s: float, end_s: float) -> dict[str, Any]:
        ports = [self._random.randint(*ends) for ends in PORT_RANGES]
        return {
            "members": [{"name": name, "address": self._meeting.addresses.get(name, "")} for name in group],
            "ports": [*ports, *(() if self._meeting.port in ports else (self._meeting.port,))],
            "datagrams": self._random.randint(32768, 60999),
            "token": secrets.token_hex(8),
            "arm": following.arm,
            "meeting_port": self._random.randint(20000, 32767),
            "meet_s": round(meet_s, 2),
            "end_s": round(end_s, 2),
            "local_rank": following.rail or 0,
        }

    def _keep(self, group: Sequence[str], following: Round, probed: Mapping[str, Probed]) -> None:
        sides = [side_of(name, probed[name].events, probed[name].says, probed[name].began + probed[name].took_s) for name in group]
        again = sum(set(one.members) == set(group) and one.arm == following.arm and one.phase == following.phase for one in self.history)
        found = replace(judged(sides, following.arm), round=self.round, attempt=again + 1, phase=following.phase, rail=following.rail)
        measured = found.outcome != "not_measured"
        began = min(probed[name].began for name in group)
        record = self._case.add(
            KIND,
            cell=CELL,
            source=PROGRAM,
            began=began,
            took_s=max(probed[name].took_s for name in group),
            outcome="ok" if measured else "partial",
            reason="" if measured else found.says or "a member told nothing",
            data=_data(found, following.why),
        )
        self.history.append(replace(found, id=record.id))


def _data(found: Try, why: str) -> dict[str, Any]:
    return {
        "round": found.round,
        "arm": found.arm,
        "members": list(found.members),
        "outcome": found.outcome,
        "how": found.how,
        "measures": dict(found.measures),
        "says": found.says,
        "attempt": found.attempt,
        "phase": found.phase,
        "rail": found.rail,
        "missing": list(found.missing),
        "links": [{"a": link.a, "b": link.b, "how": link.how, "says": link.says, "rtt_ms": link.rtt_ms, "mbps": link.mbps} for link in found.links],
        "why": why,
    }
