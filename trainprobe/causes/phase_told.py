"""What usually stops a job in the phase at whose lines its log ends. It is worth as much as the
phase tells: it ranks causes, and names none.
"""

from __future__ import annotations

from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene, weighing
from trainprobe.facts import LogPhase
from trainprobe.logtext.phases import Phase, phases
from trainprobe.model.diagnosis import Weighing


def phase_told(scene: Scene) -> Phase | None:
    """The phase of the group's log; None where it does not simply stop."""
    return phases().get(scene.group.phase)


def phase_line(scene: Scene) -> LogPhase | None:
    """The last line that told it."""
    found = [one for one in scene.of(LogPhase) if one.phase == scene.group.phase]
    return max(found, key=lambda one: one.place, default=None)


def phase_weighings(scene: Scene) -> dict[str, Weighing]:
    """The causes of the phase, the likeliest first; none without a phase."""
    phase, line = phase_told(scene), phase_line(scene)
    if phase is None or line is None:
        return {}
    same = [one for one in scene.of(LogPhase) if one.phase == phase.id]
    signs = frozenset(sign for one in same for sign in one.signs)
    if len({one.rank for one in same}) > 1:
        signs |= {"several-ranks"}
    stops = f"The log stops {phase.when} («{short(line.line, 80)}»)"
    return {
        id_: weighing(one.points, "suspects-log", f"{stops}: {one.reason}", line)
        for id_, one in phase.likely(signs).items()
    }
