"""Findings of the model's stress test in words, and what to change in the module they name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from trainprobe.causes.phrases import Fixes, fix, sentence, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.model.ranks import and_list
from trainprobe.shipped import shipped
from trainprobe.waits import SuspectGroup
from trainprobe.waits.suspects import Finding

_NAMED = ("module", "parameter", "buffer", "attribute", "tensor")
_OTHERS = 3
BEYOND = 1e18  # what the probes write for infinite and for nan


def stressed(group: SuspectGroup, prefix: str) -> Finding | None:
    """The group's surest finding if its property is that of `prefix` (`mask.`)."""
    finding = group.stressed
    if finding is not None and f"{finding.property}." == prefix and finding.findings:
        return finding.findings[0]
    return None


def weigh_stressed(group: SuspectGroup, prefix: str) -> Weighings:
    """26 points for a measurement, 13 if it may follow from another, 6 for the line that raised."""
    finding = stressed(group, prefix)
    if finding is None or group.stressed is None:
        return
    yield weighing(
        13 if group.stressed.follows else 26,
        "probe-outcome",
        _measured(finding),
        ids=finding.evidence,
    )
    if finding.line and finding.raised:
        says = f"It raised at {finding.line}: {short(finding.raised, 120)}"
        yield weighing(6, "source", says, ids=finding.evidence)


def stressed_summary(group: SuspectGroup, prefix: str) -> str:
    """The finding with its place and number, and what else failed; "" if nothing did."""
    finding = stressed(group, prefix)
    if finding is None or group.stressed is None:
        return ""
    says = sentence(short(finding.says, 400))
    if finding.where and finding.where not in says:
        says += f" It is {_place(finding)}."
    if finding.module and finding.module not in says:
        says += f" It is in module {finding.module}."
    if finding.line and finding.line not in says:
        says += f" It raised at {finding.line}."
    more = [
        other
        for other in group.stressed.findings[1:]
        if (other.name, other.where) != (finding.name, finding.where)
    ]
    reported = list(
        dict.fromkeys(
            f"{other.name} in {other.where}" if other.where else other.name for other in more
        )
    )
    if reported:
        rest = f" and {len(reported) - _OTHERS} more" if len(reported) > _OTHERS else ""
        says += (
            f" Beside it: {', '.join(reported[:_OTHERS]) + rest if rest else and_list(reported)}."
        )
    return says


def stressed_fixes(scene: Scene, prefix: str) -> Fixes:
    """Fixes by the finding's name and subject; empty if the group has another property."""
    finding = stressed(scene.group, prefix)
    return _fixes(prefix, finding) if finding is not None else ()


def fixes_for(scene: Scene, prefix: str) -> Fixes:
    """The same for a cause that only measurements show: general advice without a finding."""
    return _fixes(prefix, stressed(scene.group, prefix) or Finding(prefix, ""))


def _fixes(prefix: str, finding: Finding) -> Fixes:
    known = advice()
    entries = next(
        (
            known[key]
            for key in (f"{finding.name}:{finding.what}", finding.name, prefix[:-1])
            if key in known
        ),
        (),
    )
    words = _words(finding)
    made = []
    for entry in entries:
        steps = tuple(step.format_map(words) for step in entry["steps"])
        made.append(fix(entry["title"].format_map(words), *steps))
    return tuple(made)


@functools.cache
def advice() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Return `stressed.yaml`: fixes by property, by name, and by name and what it is about."""
    data = shipped("trainprobe.causes", "stressed.yaml")
    return {name: tuple(entries) for name, entries in data.items()}


def _place(finding: Finding) -> str:
    return f"{finding.what} {finding.where}".strip()


def _measured(finding: Finding) -> str:
    """`mask.ignored is 0.31 in module layers.1.attn, above 0.001`."""
    place = f" in {_place(finding)}" if finding.where else ""
    if finding.value is None or (finding.raised and not finding.threshold):
        return f"{finding.name} failed{place}: {short(finding.raised or finding.says, 200)}"
    unit = f" {finding.unit}" if finding.unit else ""
    # a count of what must not be there
    if (
        not finding.threshold
        and finding.value == int(finding.value)
        and abs(finding.value) < BEYOND
    ):
        return f"{finding.name} failed{place}" + (
            f", with {finding.value:g}{unit} in all" if finding.value > 1 else ""
        )
    number = "no finite number" if abs(finding.value) >= BEYOND else f"{finding.value:.3g}{unit}"
    return f"{finding.name} is {number}{place}" + (
        f", above {finding.threshold:g}{unit}" if finding.threshold else ""
    )


def _words(finding: Finding) -> Mapping[str, str]:
    where = finding.where if finding.what in _NAMED else ""
    owner, _, leaf = where.rpartition(".")
    module = finding.module or (where if finding.what == "module" else owner) or "the model"
    return {
        "where": finding.where or module,
        "leaf": leaf or (finding.where.rpartition(".")[2] or "module"),
        "owner": owner or "the model",
        "module": module,
        "line": f"open {finding.line}" if finding.line else "",
        "raised": short(finding.raised, 160),
    }
