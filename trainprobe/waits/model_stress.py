"""What the stress test found of the user's model: one group of suspects for each property that
failed, what explains others first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.facts import Facts, Measured, Plan, ProbeFailure, ProbeResult, RankEnding, Rung
from trainprobe.facts.frame_rows import frames_of
from trainprobe.facts.host_checks import HostCheck
from trainprobe.model.diagnosis import Link
from trainprobe.stacks.places import user_frame
from trainprobe.waits.suspects import Finding, Stressed, SuspectGroup

PROBE = "model_stress"
SUITES = ("shapes", "masks", "tying", "precision", "serialization", "fuzz", "throughput")
BESIDE = ("evaluation", "ranks")
"""Lines that are told beside the seven suites."""
# What one illness brings about in other properties: eval() that is not still makes every comparison
# differ, a tie that a load breaks makes the saved state, the resumed run and the ranks differ and
# every copy that is made by a load, rows that are mixed make padding count. From the illness to its
# signs.
EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "evaluation": (
        "shape",
        "mask",
        "tied",
        "precision",
        "state",
        "resume",
        "ranks",
        "gradient",
        "config",
    ),
    "gradient": ("precision", "resume", "ranks"),
    "shape": ("mask", "precision", "ranks", "config"),
    "mask": ("precision", "config"),
    "tied": ("shape", "precision", "state", "resume", "ranks", "config"),
    "state": ("resume",),
    "precision": ("resume",),
    "unused": ("ranks",),
}
ORDER = (
    "evaluation",
    "gradient",
    "shape",
    "mask",
    "tied",
    "state",
    "precision",
    "resume",
    "unused",
    "ranks",
    "config",
)
"""Where nothing explains the other: what spoils every step first, then what spoils a save, then
what spoils more ranks or other configurations.
"""
ECHOES: Mapping[str, str] = {"ranks": "precision"}
"""Differences of a few roundings that a cast brings about wherever it runs in another order: from
the echo to what it is told under.
"""
ROUNDING = 1e-3
"""Relative: what single precision adds up to over the layers of a small model."""
MOST_NAMED = 4
_NO_PLACE = ("size", "option", "options", "loss", "")
_KEPT = (Rung, RankEnding, Plan, ProbeResult)


def stressed_groups(facts: Facts, rung: Rung) -> tuple[SuspectGroup, ...]:
    """One group for each property with a finding in this cell; empty where the probe is another
    one or found nothing.
    """
    if rung.probe != PROBE:
        return ()
    found: dict[str, list[Finding]] = {}
    for one in findings(facts, rung.cell):
        found.setdefault(one.name.partition(".")[0], []).append(one)
    for name, root in _echoes(found).items():
        found[root] += found.pop(name)
    follows = {
        name: tuple(other for other in found if _brings(other, found[other], name, found[name]))
        for name in found
    }
    plan = facts.one(Plan) or Plan()
    places = {
        name: (len(follows[name]), ORDER.index(name) if name in ORDER else len(ORDER), name)
        for name in found
    }
    return tuple(
        SuspectGroup(
            cell=rung.cell,
            probe=rung.probe,
            ranks=(),
            how="failed-first",
            says=found[name][0].says,
            mode="check",
            chain=tuple(
                Link(name, other, "may follow from", found[other][0].evidence)
                for other in follows[name][:1]
            ),
            evidence=tuple(dict.fromkeys(id_ for one in found[name] for id_ in one.evidence)),
            world_size=max(rung.nproc, 1),
            hosts=(plan.host,) if plan.host else (),
            stressed=Stressed(name, tuple(found[name]), follows[name]),
        )
        for name in sorted(found, key=places.__getitem__)
    )


def findings(facts: Facts, cell: str) -> tuple[Finding, ...]:
    """All findings of a cell in the order in which they were told; those of one name that say
    where come before those that do not.
    """
    numbers = {
        _key(fact.name, fact.labels): fact for fact in reversed(facts.of(Measured, cell=cell))
    }
    found = []
    for failure in facts.of(ProbeFailure, cell=cell):
        name = _text(failure.details, "property")
        if failure.probe == PROBE and "." in name:
            number = numbers.get(_key(name, failure.details))
            found.append(_finding(failure, name, number))
    return tuple(sorted(found, key=lambda one: one.where == ""))


def _echoes(found: Mapping[str, Sequence[Finding]]) -> Mapping[str, str]:
    """The properties of which nothing differs by more than roundings, and the one of which a
    finding explains that.
    """
    return {
        name: root
        for name, root in ECHOES.items()
        if found.get(root)
        and found.get(name)
        and all(
            one.value is not None and one.threshold and one.value < ROUNDING for one in found[name]
        )
    }


def seen_by(facts: Facts, group: SuspectGroup) -> Facts:
    """What counts in this group: where it is about one property of a model, of its cell only
    what was found of this property.
    """
    if group.stressed is None:
        return facts
    own = f"{group.stressed.property}."

    def counts(fact: Any) -> bool:
        if fact.cell != group.cell or isinstance(fact, _KEPT):
            return True
        if isinstance(fact, Measured):
            return fact.name.startswith(own)
        return isinstance(fact, ProbeFailure) and _text(fact.details, "property").startswith(own)

    return Facts([fact for fact in facts.all if counts(fact)], unreadable=facts.unreadable)


def told_of(group: SuspectGroup) -> dict[str, Any]:
    """The findings of a group for programs, the surest first; empty where it is about no
    property of a model.
    """
    one = group.stressed
    if one is None:
        return {}
    kept = (
        "name",
        "what",
        "where",
        "module",
        "suite",
        "value",
        "threshold",
        "unit",
        "line",
        "raised",
        "says",
    )
    return {
        "property": one.property,
        "follows": list(one.follows),
        "findings": [{name: getattr(each, name) for name in kept} for each in one.findings],
    }


def told_of_row(facts: Facts, rung: Rung) -> dict[str, Any]:
    """`suites`, the line of each suite of this cell: name, outcome (passed, failed, skipped,
    not_measured), says, took_s, findings; empty without any.

    A line says what was tried, why nothing was, or what was found by name and place: the causes
    tell of it in whole sentences.
    """
    rows = []
    found = findings(facts, rung.cell)
    checks = {
        fact.name: fact for fact in facts.of(HostCheck, cell=rung.cell) if fact.probe == PROBE
    }
    for name in (*SUITES, *BESIDE):
        check = checks.get(f"stress.{name}")
        value = _value(check.value) if check is not None else {}
        state = value.get("state")
        if check is None or state not in ("passed", "failed", "skipped", "unanswered"):
            continue
        says = check.says.partition(", ")[2] if check.says.startswith(f"{name}: ") else check.says
        took = value.get("took_s")
        own = tuple(
            dict.fromkeys(
                f"{one.name} in {one.where}" if one.where else one.name
                for one in found
                if one.suite == name
            )
        )
        rows.append(
            {
                "name": name,
                "outcome": "not_measured" if state == "unanswered" else state,
                "says": (
                    ", ".join(
                        (
                            *own[:MOST_NAMED],
                            *([f"{len(own) - MOST_NAMED} more"] if len(own) > MOST_NAMED else []),
                        )
                    )
                    or says
                ),
                "took_s": (
                    float(took) if isinstance(took, (int, float)) and math.isfinite(took) else 0.0
                ),
                "findings": len(own),
            }
        )
    return {"suites": rows} if rows else {}


def left_unasked(facts: Facts) -> str:
    """A sentence on the suites that asked nothing of the model, with their reasons; empty where
    each asked something.
    """
    skipped = [
        f"{row['name']} ({row['says']})" if row["says"] else row["name"]
        for rung in facts.of(Rung)
        if rung.probe == PROBE
        for row in told_of_row(facts, rung).get("suites", ())
        if row["outcome"] == "skipped"
    ]
    return f"Not asked of the model: {'; '.join(skipped)}." if skipped else ""


def _finding(failure: ProbeFailure, name: str, number: Measured | None) -> Finding:
    rows = failure.details.get("frames")
    frame = user_frame(frames_of(rows if isinstance(rows, list) else ()))
    kind, message = _text(failure.details, "type"), _text(failure.details, "message")
    return Finding(
        name=name,
        says=failure.says,
        what=_text(failure.details, "what"),
        where=_text(failure.details, "where"),
        module=_text(failure.details, "module"),
        suite=_text(failure.details, "suite"),
        value=number.value if number is not None else None,
        threshold=number.threshold if number is not None else None,
        unit=number.unit if number is not None else "",
        line=frame.where if frame is not None else "",
        raised=f"{kind}: {message}".rstrip(": ") if kind else "",
        evidence=tuple(
            dict.fromkeys((*failure.evidence, *(number.evidence if number is not None else ())))
        ),
    )


def _brings(cause: str, causes: Sequence[Finding], sign: str, signs: Sequence[Finding]) -> bool:
    """May the one property explain the other? Not where both are pinned to parts of the model
    that have nothing to do with each other.
    """
    if sign not in EXPLAINS.get(cause, ()):
        return False
    return cause == "evaluation" or any(
        _beside(_place(one), _place(other)) for one in causes for other in signs
    )


def _place(one: Finding) -> str:
    """Where it is; empty for no place in particular, also where the model itself is named: by
    its class, which a module's name does not look like.
    """
    place = one.module or ("" if one.what in _NO_PLACE else one.where)
    return "" if place[:1].isupper() and "." not in place else place


def _beside(one: str, other: str) -> bool:
    return (
        not one
        or not other
        or f"{one}.".startswith(f"{other}.")
        or f"{other}.".startswith(f"{one}.")
    )


def _key(name: str, labels: Mapping[str, Any]) -> tuple[str, str, str]:
    return name, _text(labels, "what"), _text(labels, "where")


def _text(labels: Mapping[str, Any], name: str) -> str:
    value = labels.get(name)
    return value[:400] if isinstance(value, str) else ""


def _value(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
