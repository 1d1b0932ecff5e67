"""What the probes answered and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

# What the witness notes.
_NOTES = (
    "start",
    "step",
    "loader.began",
    "loader.empty",
    "loader.first_batch",
    "data_parallel",
    "columns.removed",
    "leave",
    "exit",
)


@dataclass(frozen=True)
class ProbeResult(Fact):
    """`answer` is yes, no, cannot or empty when the probe never gave one.

    `open_phase` is the phase that began and did not end, empty where all did. `bad_lines` counts
    lines that were no events.
    """

    probe: str = ""
    answer: str = ""
    says: str = ""
    open_phase: str = ""
    open_since: float | None = None
    bad_lines: int = 0
    bad_sample: str = ""
    cut: bool = False


@dataclass(frozen=True)
class Measured(Fact):
    """A number that a probe measured. `labels` holds what else stood in the event (op,
    size_bytes, workers …).
    """

    probe: str = ""
    name: str = ""
    value: float = 0.0
    unit: str = ""
    threshold: float | None = None
    source: str = ""
    who: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbeFailure(Fact):
    """A `fail` event of a probe."""

    probe: str = ""
    says: str = ""
    phase: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def probe_of(cell: str) -> str:
    """`gloo_control@4` → `gloo_control`."""
    return cell.partition("@")[0]


def parse_probe_results(record: Evidence) -> list[Fact]:
    """The answer of one process of a probe, with its numbers and failures. Events of the witness
    in the user's script give none.
    """
    events = events_of(record)
    if events and any(is_witness(event) for event in events):
        return []
    base: dict[str, Any] = {
        "evidence": (record.id,),
        "cell": record.cell,
        "rank": record.subject.rank,
        "probe": probe_of(record.cell),
    }
    open_phases: list[tuple[str, float | None]] = []
    found: list[Fact] = []
    answer = says = ""
    for event in events:
        kind, name = event.get("event"), _name(event)
        if kind == "phase.begin":
            open_phases.append((name, moment(event)))
        elif kind == "phase.end":
            open_phases = [phase for phase in open_phases if phase[0] != name]
        elif kind == "measure":
            found += _measured(event, base)
        elif kind == "fail":
            details = {
                str(key): fields.plain(item)
                for key, item in event.items()
                if key not in ("event", "at", "rank", "seq", "says")
            }
            found.append(
                ProbeFailure(
                    **base,
                    says=_words(event),
                    phase=open_phases[-1][0] if open_phases else "",
                    details=details,
                )
            )
        elif kind == "result" and event.get("answer") in ("yes", "no", "cannot"):
            answer, says = event["answer"], _words(event)
    phase, since = open_phases[-1] if open_phases else ("", None)
    data = record.data
    bad = fields.whole(data, "bad_lines") or 0
    result = ProbeResult(
        **base,
        answer=answer,
        says=says,
        open_phase=phase,
        open_since=since,
        bad_lines=bad,
        bad_sample=fields.text(data, "bad_sample"),
        cut=bool(data.get("cut")),
    )
    return [result, *found]


def events_of(record: Evidence) -> list[Mapping[str, Any]]:
    return [
        event
        for event in fields.items(record.data, "events")
        if isinstance(event, Mapping) and isinstance(event.get("event"), str)
    ]


def is_witness(event: Mapping[str, Any]) -> bool:
    """An event of the witness inside the user's processes, rather than of a probe."""
    name = event.get("name")
    if event["event"] == "note":
        return isinstance(name, str) and name in _NOTES
    return event["event"] == "fail" and name == "exception"


def _measured(event: Mapping[str, Any], base: Mapping[str, Any]) -> list[Fact]:
    try:
        value = fields.number(event, "value")
        if value is None:
            return []
        known = (
            "event",
            "at",
            "rank",
            "seq",
            "name",
            "value",
            "unit",
            "threshold",
            "source",
            "who",
        )
        labels = {str(key): fields.plain(item) for key, item in event.items() if key not in known}
        if base["rank"] is None and isinstance(
            event.get("rank"), int
        ):  # a probe of the host that speaks of its children's ranks
            labels["rank"] = event["rank"]
        words: dict[str, Any] = {
            name: fields.text(event, name) for name in ("name", "unit", "source", "who")
        }
        return [
            Measured(
                **base,
                **words,
                value=value,
                threshold=fields.number(event, "threshold"),
                labels=labels,
            )
        ]
    except fields.UnreadableError:
        return []  # a probe that prints nonsense loses that number only


def _name(event: Mapping[str, Any]) -> str:
    name = event.get("name")
    return name[:400] if isinstance(name, str) else ""


def _words(event: Mapping[str, Any]) -> str:
    says = event.get("says")
    return says[:4000] if isinstance(says, str) else ""


def moment(event: Mapping[str, Any]) -> float | None:
    """When the event was written, Unix seconds; None where it does not say."""
    try:
        return fields.number(event, "at")
    except fields.UnreadableError:
        return None
