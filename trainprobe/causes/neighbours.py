"""What else a symptom of a log may mean: causes of which nothing is shown, and which the reader
should think of all the same.

A fragment of a log often shows a symptom and not what brought it about. Few causes then have
evidence of their own, and who reads only these would look in too few places. So the symptom's usual
other meanings stand behind them, with the fewest points that there are. They share what belongs to
`unknown`, and so they take nothing from a cause that is shown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainprobe.causes.component_told import component_told
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.startup_failures import made_steps
from trainprobe.causes.statements import late, text_of
from trainprobe.facts import LogEvent, LogFailure, LogJob
from trainprobe.model.diagnosis import Weighing
from trainprobe.shipped import shipped

POINTS = 3
LISTED = 4  # causes that a reader is told of at least, where so many are possible
_MOST = 12  # failures and known lines whose words are heard
_TEXT_CHARACTERS = 6000
_SURE = frozenset({"wording", "form", "cut", "frame"})


@dataclass(frozen=True)
class Symptom:
    """`when` is searched in the first failure; `causes` maps likely ids to reasons. `general`: it
    tells less than the component that failed.
    """

    id: str
    when: re.Pattern[str]
    causes: Mapping[str, str]
    at_start: bool = False
    general: bool = False


@functools.cache
def symptoms() -> tuple[Symptom, ...]:
    """Return the symptoms of `neighbours.yaml`, the specific ones first."""
    data = shipped("trainprobe.causes", "neighbours.yaml")
    return tuple(
        Symptom(
            name,
            re.compile("".join(entry["when"].split("\n")).replace(" |", "|")),
            dict(entry["causes"]),
            bool(entry.get("at_start", False)),
            bool(entry.get("any", False)),
        )
        for name, entry in data.items()
    )


def neighbours(scene: Scene) -> dict[str, Weighing]:
    """Causes with the fewest points, the likelier first; none without a failure in a log."""
    if scene.one(LogJob) is None or (scene.origin is not None and scene.origin.interrupted):
        return {}
    facts = _heard(scene)
    text = _words(scene, facts)[:_TEXT_CHARACTERS]
    starting = made_steps(scene) == 0
    shown = [
        symptom
        for symptom in symptoms()
        if (starting or not symptom.at_start) and symptom.when.search(text)
    ]
    told = component_told(scene)
    tables = [
        *(symptom.causes for symptom in shown if not symptom.general),
        *([told.component.causes] if told is not None and told.by in _SURE else []),
        *(symptom.causes for symptom in shown if symptom.general),
    ]
    found: dict[str, Weighing] = {}
    for table in tables:
        for cause_id, reason in table.items():
            says = f"Nothing was seen of it, but {reason}"
            found.setdefault(cause_id, weighing(POINTS, "suspects-log", says, *facts[:1]))
    return found


def _heard(scene: Scene) -> list[LogFailure]:
    """What failed of its own; where nothing did, what only repeats another's end."""
    failures = sorted(scene.of(LogFailure), key=lambda one: one.order)
    own = [failure for failure in failures if not failure.echo]
    return own[:1] if own else failures[:_MOST]


def _words(scene: Scene, failures: Iterable[LogFailure]) -> str:
    parts = [f"{failure.says}\n{failure.text}" for failure in failures]
    origin = scene.origin
    if origin is not None:
        parts += [text_of(origin), " ".join(frame.name for frame in origin.frames[-8:])]
    # then echoes tell nothing more
    explained = any(
        not failure.echo and failure.what in ("exception", "signal", "event")
        for failure in failures
    )
    events = [
        event
        for event in scene.of(LogEvent)
        if (event.fatal or (event.echo and not explained)) and not late(scene, event)
    ]
    parts += [event.line for event in sorted(events, key=lambda event: event.place or 0)[:_MOST]]
    return "\n".join(part[:800] for part in parts)
