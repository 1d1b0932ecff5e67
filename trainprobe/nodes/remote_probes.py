"""Run one probe on several nodes at once; collect its events and endings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Ended
from trainprobe.model.progress import Silence
from trainprobe.nodes.answers import Accept, Answer, read_answer
from trainprobe.nodes.fan_out import Call, call_all, outcome_of
from trainprobe.nodes.local_probe import CELL, ENDED, EVENT
from trainprobe.nodes.transports import Node, Way
from trainprobe.redact import clean
from trainprobe.system.interruption import Interruption

COMMAND = "probe-here"
HOME_S = 2.0  # for the last lines, after the probe's own deadline on the node
ACCEPT = Accept(frozenset({EVENT, ENDED}), CELL, tells=ENDED)


@dataclass(frozen=True)
class Probed:
    """The result of a probe on one node: its events in order, and how it ended.

    `ended` is None where the node did not report it; `says` is then the reason, and otherwise the
    tail of the probe's output. `began` (Unix time) and `took_s` cover the whole call.
    """

    events: tuple[Mapping[str, Any], ...] = ()
    ended: Ended | None = None
    says: str = ""
    began: float = 0.0
    took_s: float = 0.0

    @property
    def answer(self) -> tuple[str, str]:
        """The last `result` as (answer, says), both empty where there is none."""
        for event in reversed(self.events):
            if event.get("event") == "result":
                return str(event.get("answer", "")), clean(str(event.get("says", "")))[:2000]
        return "", ""


def probe_on(
    way: Way,
    environs: Mapping[str, Mapping[str, str]],
    program: str,
    timeout_s: float,
    interruption: Interruption,
    *,
    python: str = "",
    way_s: float | None = None,
) -> dict[str, Probed]:
    """Run the built-in probe `program` on all nodes of `environs` at once, for at most `timeout_s`
    each, with these variables added to the node's own.

    `python` is the interpreter, the tool's own if empty. `way_s` is the time to reach a node. The
    result has every node, also one that gave no answer. After Ctrl-C the nodes end their probes,
    and the results so far are returned.
    """
    nodes = [
        way.node(name, (COMMAND,), _task(program, env, timeout_s, python), held=True)
        for name, env in environs.items()
    ]
    found: dict[str, Probed] = {}

    def heard(node: Node, call: Call) -> bool:
        found[node.name] = _probed(node, call)
        return found[node.name].ended is not None

    most_s = None if way_s is None else timeout_s + way_s + HOME_S
    call_all(nodes, timeout_s + HOME_S, heard, interruption, Silence(), patient=True, most_s=most_s)
    return found


def _task(program: str, env: Mapping[str, str], timeout_s: float, python: str) -> bytes:
    return (
        json.dumps(
            {"program": program, "env": dict(env), "timeout_s": timeout_s, "python": python}
        ).encode()
        + b"\n"
    )


def _probed(node: Node, call: Call) -> Probed:
    answer = read_answer(call.ran.stdout, ACCEPT) if call.ran is not None else Answer()
    events: list[Mapping[str, Any]] = []
    ended: Ended | None = None
    output = ""
    for record in answer.records:
        event = record.data.get("event")
        if record.kind == EVENT and isinstance(event, dict) and isinstance(event.get("event"), str):
            events.append(event)
        elif record.kind == ENDED:
            ended = _ended(record.data.get("ended"))
            output = clean(str(record.data.get("output") or ""))
    says = output if ended is not None else outcome_of(node, call, answer, ACCEPT)[1]
    return Probed(tuple(events), ended, says, call.began, call.ended - call.began)


def _ended(row: Any) -> Ended | None:
    try:
        return from_json(Ended, row)
    except (ValueError, RecursionError):
        return None
