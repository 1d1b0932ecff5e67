"""Tries nodes in pairs: rounds of small real traffic, with fresh processes for each group, until
the search has its answer or the time is over.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainprobe import isolation
from trainprobe.isolation.sides import files_seen, judged, side_of
from trainprobe.nodes.fan_out import AT_ONCE
from trainprobe.nodes.remote_probes import probe_on
from trainprobe.system.interruption import Interrupted, Interruption

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.isolation import Plan, Round, Try, Verdict
    from trainprobe.model.progress import Progress
    from trainprobe.nodes.remote_probes import Probed
    from trainprobe.nodes.transports import Way

KIND, CELL, PROGRAM = "pair", "pairs", "node_pair"
# Members listen on one port of each of these ranges. Most lie where Linux, gloo and NCCL take their
# ports for connections (net.ipv4.ip_local_port_range, 32768 to 60999 by default).
PORT_RANGES = (
    (2000, 9999),
    (10000, 19999),
    (20000, 32767),
    *((start, start + 3499) for start in range(32768, 60768, 3500)),
    (61000, 65535),
)
MEETING_PORT = 29500
MEET_S = {"quick": 5.0, "standard": 8.0, "deep": 15.0}
AFTER_S = 8.0  # for silent ports, tried three times; a healthy member takes 2 s
TORCH_S = {"quick": 20.0, "standard": 45.0, "deep": 90.0}  # torch has to be imported first
# With so few nodes all pairs are tried, as long as so much time is left before each further round.
FEW, SPARE_S = 8, 10.0
LEAST_S = 4.0  # with less time left no round is begun
WAY_S = 4.0


@dataclass(frozen=True)
class Meeting:
    """How the members meet: at `addresses`, or else by name; the job's own `port` is tried too.
    `rails` is the number of local ranks to try separately with NCCL, `plan` the search plan (by
    default that of the budget), `at_once` how many nodes are asked at a time. In each folder of
    `paths` the members look for each other's files.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    port: int = MEETING_PORT
    rails: int = 0
    plan: Plan | None = None
    at_once: int = AT_ONCE
    paths: tuple[str, ...] = ()


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
    """Search `nodes` for faulty nodes and links. Each group tried is a `pair` record in `case`; a
    last record lists what was not tried.

    No round begins that could not end by `deadline` (time.monotonic). The last `keep_s` stay free
    while all is well; a failure may use them, since it names nobody until it was tried again.
    `python` runs the members, the tool's own if empty; arms gloo and nccl need torch in it. Raises
    Interrupted after Ctrl-C, once the results so far are recorded.
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
            if any(earlier.outcome != "passed" for earlier in search.history) or (
                search.history and _settles(following)
            ):
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
                left = (
                    (
                        f"{following.why}: {len(following.groups)} groups,"
                        f" {'interrupted' if interruption.asked else 'the time was over'}"
                    ),
                )
                break
            members = sum(len(group) for group in following.groups)
            progress.note(
                f"Round {search.round + 1} of pairs: {following.why} ({members} nodes,"
                f" {following.arm})."
            )
            left = search.tried(following, deadline, interruption)
            if left:
                break
    verdict = isolation.conclude(search.history, nodes, left)
    left = verdict.left
    data = {
        "done": True,
        "nodes": list(nodes),
        "tried": verdict.tried,
        "left": list(left),
        "arm": asked.arm,
    }
    case.add(
        KIND,
        cell=CELL,
        source=PROGRAM,
        outcome="partial" if left else "ok",
        reason="; ".join(left),
        data=data,
    )
    if interruption.asked:
        raise Interrupted
    return verdict


def _settles(following: Round | Verdict) -> bool:
    """Whether the round settles an open question, such as a pair that passed but was slow."""
    if not isinstance(following, isolation.Round):
        return False
    return following.phase == "pairs" and not following.further


def _more(plan: Plan, nodes: int, left_s: float) -> Plan:
    """All pairs, where nodes are few and time is left: an untried link may be bad."""
    if nodes > FEW or left_s < SPARE_S:
        return plan
    return replace(plan, breadth=max(plan.breadth, isolation.rounds_for_all(nodes)))


def plan_of(budget: str, arm: str, nodes: int, rails: int = 0) -> Plan:
    """The search plan of a budget: the more time, the more links, and the more repetitions against
    faults that come and go.
    """
    breadth, repeats, again = {"standard": (7, 1, 3), "deep": (15, 3, 6)}.get(budget, (2, 1, 2))
    breadth = min(max(2, nodes - 1), breadth)
    return isolation.Plan(
        arm,
        breadth=breadth,
        repeats=repeats,
        again=again,
        ladder=arm != "tcp" and budget != "quick",
        rails=rails if arm == "nccl" else 0,
    )


class _Search:
    """The rounds so far. Each group and try has new ports and a new token, so that nobody meets the
    rest of an earlier try.
    """

    def __init__(self, way: Way, case: Case, budget: str, meeting: Meeting, python: str) -> None:
        self.history: list[Try] = []
        self.round = 0
        self._way, self._case, self._meeting, self._python = way, case, meeting, python
        self._meet_s = MEET_S.get(budget, MEET_S["quick"])
        self._torch_s = TORCH_S.get(budget, TORCH_S["quick"])
        self._random = random.Random(secrets.token_bytes(8))

    def tried(
        self, following: Round, deadline: float, interruption: Interruption
    ) -> tuple[str, ...]:
        """Try all groups of the round, as many at once as allowed; return what was left out."""
        self.round += 1
        waiting = list(following.groups)
        while waiting:
            now: list[tuple[str, ...]] = [waiting.pop(0)]
            while waiting and sum(map(len, now)) + len(waiting[0]) <= self._meeting.at_once:
                now.append(waiting.pop(0))
            left_s = deadline - time.monotonic()
            if left_s < LEAST_S or interruption.asked:
                return (
                    f"{following.why}: {len(now) + len(waiting)} of {len(following.groups)} groups",
                )
            self._at_once(now, following, left_s, interruption)
        return ()

    def _at_once(
        self,
        groups: Sequence[tuple[str, ...]],
        following: Round,
        left_s: float,
        interruption: Interruption,
    ) -> None:
        tcp = following.arm == "tcp"
        meet_s = min(self._meet_s if tcp else self._torch_s, max(1.5, left_s * 0.4))
        end_s = min(meet_s + AFTER_S if tcp else 2 * meet_s, left_s - 1.0)
        environs: dict[str, dict[str, str]] = {}
        for group in groups:
            task = self._task(group, following, meet_s, end_s)
            for name in group:
                environs[name] = {"TRAINPROBE_PAIR": json.dumps({**task, "me": name})}
        probed = probe_on(
            self._way,
            environs,
            PROGRAM,
            end_s,
            interruption,
            python=self._python,
            way_s=max(0.5, min(WAY_S, left_s - end_s)),
        )
        if interruption.asked:
            return  # members that we ended prove nothing
        for group in groups:
            self._keep(group, following, probed)

    def _task(
        self, group: Sequence[str], following: Round, meet_s: float, end_s: float
    ) -> dict[str, Any]:
        ports = [self._random.randint(*ends) for ends in PORT_RANGES]
        return {
            "members": [
                {"name": name, "address": self._meeting.addresses.get(name, "")} for name in group
            ],
            "ports": [*ports, *(() if self._meeting.port in ports else (self._meeting.port,))],
            "datagrams": self._random.randint(32768, 60999),
            "token": secrets.token_hex(8),
            "arm": following.arm,
            "meeting_port": self._random.randint(20000, 32767),
            "meet_s": round(meet_s, 2),
            "end_s": round(end_s, 2),
            "local_rank": following.rail or 0,
            "paths": list(self._meeting.paths) if following.arm == "tcp" else [],
        }

    def _keep(self, group: Sequence[str], following: Round, probed: Mapping[str, Probed]) -> None:
        sides = [
            side_of(
                name,
                probed[name].events,
                probed[name].says,
                probed[name].began + probed[name].took_s,
            )
            for name in group
        ]
        again = sum(
            set(earlier.members) == set(group)
            and earlier.arm == following.arm
            and earlier.phase == following.phase
            for earlier in self.history
        )
        found = replace(
            judged(sides, following.arm),
            round=self.round,
            attempt=again + 1,
            phase=following.phase,
            rail=following.rail,
        )
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
            data={**_data(found, following.why), "files": files_seen(sides)},
        )
        self.history.append(replace(found, id=record.id))


_OF_TRY = ("round", "arm", "outcome", "how", "says", "attempt", "phase", "rail")


def _data(found: Try, why: str) -> dict[str, Any]:
    return {
        **{name: getattr(found, name) for name in _OF_TRY},
        "members": list(found.members),
        "measures": dict(found.measures),
        "missing": list(found.missing),
        "links": [
            {name: getattr(link, name) for name in ("a", "b", "how", "says", "rtt_ms", "mbps")}
            for link in found.links
        ],
        "why": why,
    }
