"""What the forking probe found: a child that failed, the unsafe step, and this machine's limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import HostCheck, ProbeFailure

Kind = Literal["pool", "lock", "cuda"]
PROBE = "fork_safety"


def tried(scene: Scene, kind: Kind) -> ProbeFailure | None:
    """The first failed child of this kind in the group's cell, the user's data first."""
    found = [
        fact
        for fact in scene.of(ProbeFailure)
        if fact.details.get("name") == "fork" and fact.details.get("kind") == kind
    ]
    return min(found, key=lambda fact: fact.details.get("library") != "data", default=None)


def weigh_tried(failure: ProbeFailure | None) -> Weighings:
    """26 points: it failed in a forked child and went well in the same process without the fork."""
    if failure is not None:
        yield weighing(26, "probe-outcome", failure.says.rstrip("."), failure)


def weigh_elsewhere(scene: Scene, kind: Kind) -> Weighings:
    """What the probe found, for a group of another cell: the same illness was seen to be there."""
    failed = [
        fact
        for fact in scene.facts.of(ProbeFailure)
        if fact.probe == PROBE and fact.details.get("kind") == kind
    ]
    warned = list(scene.checks("fork.thread_pool")) if kind == "pool" else []
    known = (
        [
            check
            for check in scene.checks("fork.parallel_region", bad_only=False)
            if value_of(check).get("outcome") == "hangs"
        ]
        if kind == "pool"
        else []
    )
    for points, found in ((10, failed), (6, warned), (3, known)):
        if found:
            yield weighing(points, "probe-outcome", found[0].says.rstrip("."), found[0])
            return


def culprits(failure: ProbeFailure) -> tuple[str, ...]:
    """`import x` or `data`, with what it started, as the probe saw it."""
    found = failure.details.get("culprits")
    return tuple(str(one) for one in found) if isinstance(found, (list, tuple)) else ()


def value_of(check: HostCheck) -> Mapping[str, Any]:
    """The value of a check that is an object; {} for any other."""
    try:
        found = json.loads(check.value)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
