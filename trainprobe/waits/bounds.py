"""What this node and this job allow: the limits that a prediction is held against."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from trainprobe.facts import Deadline, Facts, HostCheck, Measured, MemoryLimit, Plan
from trainprobe.facts.plan import Script
from trainprobe.model.facts import Fact
from trainprobe.scaling.wording import amount

# torch/distributed/constants.py: 10 minutes for NCCL, 30 for all others.
NCCL_S, OTHERS_S = 600.0, 1800.0
_DDP_TIMEOUT = re.compile(r"--ddp[_-]timeout(?:[= ](\d{1,9}))?$")


@dataclass(frozen=True)
class Bound:
    """A limit in the unit of what it bounds. `says` goes behind the value: `this node allows 64
    GiB`.
    """

    name: str
    value: float
    says: str
    facts: tuple[Fact, ...] = ()


def memory(facts: Facts) -> Bound | None:
    """The least of the cgroup's limits, else the memory of the node."""
    told = _least(_measured(facts, "limit.memory_bytes"))
    capped = min(
        (fact for fact in facts.of(MemoryLimit) if fact.limit_bytes),
        key=lambda fact: fact.limit_bytes or 0,
        default=None,
    )
    if told is None and capped is None:
        return None
    values: list[tuple[float, Fact]] = [(told.value, told)] if told is not None else []
    values += (
        [(float(capped.limit_bytes), capped)] if capped is not None and capped.limit_bytes else []
    )
    value, fact = min(values, key=lambda one: one[0])
    return Bound("limit.memory_bytes", value, f"this node allows {amount(value, 'bytes')}", (fact,))


def descriptors(facts: Facts) -> Bound | None:
    """The soft limit of open files of one process."""
    told = _least(_measured(facts, "limit.nofile"))
    if told is not None:
        return Bound("limit.nofile", told.value, f"the limit is {amount(told.value, '')}", (told,))
    check = next((fact for fact in facts.of(HostCheck) if fact.name == "lim.nofile"), None)
    soft = _first_number(check.value) if check is not None else None
    return (
        Bound("limit.nofile", soft, f"the limit is {amount(soft, '')}", (check,))
        if check is not None and soft is not None
        else None
    )


def shared_memory(facts: Facts) -> Bound | None:
    """The size of /dev/shm."""
    told = _least(_measured(facts, "limit.shm_bytes"))
    if told is None:
        return None
    return Bound(
        "limit.shm_bytes",
        told.value,
        f"/dev/shm holds {amount(told.value, 'bytes')}",  # noqa: S108 - the name of a mount in a text
        (told,),
    )


def processes(facts: Facts) -> Bound | None:
    """The limit of processes and threads together."""
    told = _least(_measured(facts, "limit.pids"))
    if told is not None:
        return Bound("limit.pids", told.value, f"the limit is {amount(told.value, '')}", (told,))
    capped = min(
        (fact for fact in facts.of(MemoryLimit) if fact.pids_max),
        key=lambda fact: fact.pids_max or 0,
        default=None,
    )
    value = float(capped.pids_max) if capped is not None and capped.pids_max else None
    return (
        Bound("limit.pids", value, f"the limit is {amount(value, '')}", (capped,))
        if capped is not None and value is not None
        else None
    )


def group_timeout(facts: Facts) -> Bound | None:
    """The timeout of the process group: as a live job or the script says it, else torch's own."""
    plan = facts.one(Plan)
    if plan is None:
        return None
    told = [
        (fact.seconds, fact) for fact in facts.of(Deadline) if fact.kind == "group" and fact.seconds
    ]
    if told:
        seconds, fact = min(told, key=lambda one: one[0])
        return Bound("group.timeout_s", seconds, _timeout_says(seconds), (fact,))
    asked, script = _of_command(plan), facts.one(Script)
    if asked is None and script is not None and script.group_timeout_s:
        return Bound(
            "group.timeout_s",
            script.group_timeout_s,
            _timeout_says(script.group_timeout_s),
            (script,),
        )
    seconds = asked or (NCCL_S if "nccl" in plan.backend else OTHERS_S)
    return Bound("group.timeout_s", seconds, _timeout_says(seconds), (plan,))


def _timeout_says(seconds: float) -> str:
    return f"the process group's timeout is {amount(seconds, 's')}"


def _of_command(plan: Plan) -> float | None:
    """Seconds, as `--ddp_timeout` of transformers takes them."""
    for word, after in pairwise((*plan.argv, "")):
        match = _DDP_TIMEOUT.fullmatch(word)
        if match is not None:
            seconds = match[1] or after
            return float(seconds) if seconds.isdecimal() and int(seconds) > 0 else None
    return None


def _measured(facts: Facts, name: str) -> tuple[Measured, ...]:
    return tuple(fact for fact in facts.of(Measured) if fact.name == name and fact.value > 0)


def _least(found: Iterable[Measured]) -> Measured | None:
    return min(found, key=lambda fact: fact.value, default=None)


def _first_number(text: str) -> float | None:
    """Of `[1024, 524288]` the 1024; -1 is unlimited."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    first = value[0] if isinstance(value, list) and value else value
    return (
        float(first)
        if isinstance(first, (int, float)) and not isinstance(first, bool) and first > 0
        else None
    )
