"""What a cause says of a property of the model that failed in the stress test: the finding in
words, and what to change in the module that it names.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

from trainprobe.causes.phrases import Fixes, fix, sentence, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.model.ranks import and_list
from trainprobe.waits import SuspectGroup
from trainprobe.waits.suspects import Finding

_NAMED = ("module", "parameter", "buffer", "attribute", "tensor")
_OTHERS = 3
BEYOND = 1e18  # what the probes write for infinite and for nan


def stressed(group: SuspectGroup, prefix: str) -> Finding | None:
    """The group's surest finding if its property is that of `prefix` (`mask.`)."""
    one = group.stressed
    if one is not None and f"{one.property}." == prefix and one.findings:
        return one.findings[0]
    return None


def weigh_stressed(group: SuspectGroup, prefix: str) -> Weighings:
    """26 points for what was measured of this property, 13 where it may only follow from another
    one, and 6 for the user's line that raised.
    """
    one = stressed(group, prefix)
    if one is None or group.stressed is None:
        return
    yield weighing(
        13 if group.stressed.follows else 26, "probe-outcome", _measured(one), ids=one.evidence
    )
    if one.line and one.raised:
        yield weighing(
            6, "source", f"It raised at {one.line}: {short(one.raised, 120)}", ids=one.evidence
        )


def stressed_summary(group: SuspectGroup, prefix: str) -> str:
    """The finding as it was told, with its place and number where it does not say them, and what
    else of the property failed; "" where nothing did.
    """
    one = stressed(group, prefix)
    if one is None or group.stressed is None:
        return ""
    says = sentence(short(one.says, 400))
    if one.where and one.where not in says:
        says += f" It is {_place(one)}."
    if one.module and one.module not in says:
        says += f" It is in module {one.module}."
    if one.line and one.line not in says:
        says += f" It raised at {one.line}."
    more = [
        other
        for other in group.stressed.findings[1:]
        if (other.name, other.where) != (one.name, one.where)
    ]
    told = list(
        dict.fromkeys(
            f"{other.name} in {other.where}" if other.where else other.name for other in more
        )
    )
    if told:
        rest = f" and {len(told) - _OTHERS} more" if len(told) > _OTHERS else ""
        says += f" Beside it: {', '.join(told[:_OTHERS]) + rest if rest else and_list(told)}."
    return says


def stressed_fixes(scene: Scene, prefix: str) -> Fixes:
    """Fixes by the finding's name and subject; empty if the group has another property."""
    one = stressed(scene.group, prefix)
    return _fixes(prefix, one) if one is not None else ()


def fixes_for(scene: Scene, prefix: str) -> Fixes:
    """The same for a cause that only measurements show: general advice without a finding."""
    return _fixes(prefix, stressed(scene.group, prefix) or Finding(prefix, ""))


def _fixes(prefix: str, one: Finding) -> Fixes:
    known = advice()
    entries = next(
        (known[key] for key in (f"{one.name}:{one.what}", one.name, prefix[:-1]) if key in known),
        (),
    )
    words = _words(one)
    made = []
    for entry in entries:
        steps = tuple(step.format_map(words) for step in entry["steps"])
        made.append(fix(entry["title"].format_map(words), *steps))
    return tuple(made)


@functools.cache
def advice() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Return `stressed.yaml`: fixes by property, by name, and by name and what it is about."""
    import yaml  # the start-up of commands that do not judge stays free of it

    data = yaml.safe_load(
        resources.files(__package__).joinpath("stressed.yaml").read_text(encoding="utf-8")
    )
    return {name: tuple(entries) for name, entries in data.items()}


def _place(one: Finding) -> str:
    return f"{one.what} {one.where}".strip()


def _measured(one: Finding) -> str:
    """`mask.ignored is 0.31 in module layers.1.attn, above 0.001`."""
    place = f" in {_place(one)}" if one.where else ""
    if one.value is None or (one.raised and not one.threshold):
        return f"{one.name} failed{place}: {short(one.raised or one.says, 200)}"
    unit = f" {one.unit}" if one.unit else ""
    # a count of what must not be there
    if not one.threshold and one.value == int(one.value) and abs(one.value) < BEYOND:
        return f"{one.name} failed{place}" + (
            f", with {one.value:g}{unit} in all" if one.value > 1 else ""
        )
    number = "no finite number" if abs(one.value) >= BEYOND else f"{one.value:.3g}{unit}"
    return f"{one.name} is {number}{place}" + (
        f", above {one.threshold:g}{unit}" if one.threshold else ""
    )


def _words(one: Finding) -> Mapping[str, str]:
    where = one.where if one.what in _NAMED else ""
    owner, _, leaf = where.rpartition(".")
    module = one.module or (where if one.what == "module" else owner) or "the model"
    return {
        "where": one.where or module,
        "leaf": leaf or (one.where.rpartition(".")[2] or "module"),
        "owner": owner or "the model",
        "module": module,
        "line": f"open {one.line}" if one.line else "",
        "raised": short(one.raised, 160),
    }
