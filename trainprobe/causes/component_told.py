"""In which component of the job the first failure of a group shows, by its words and frames."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene
from trainprobe.causes.statements import text_of
from trainprobe.causes.version_conflicts import version_conflict
from trainprobe.facts import LogEvent, LogJob, RankException
from trainprobe.facts.log_components import COMPONENT_LINE, component_named, fails
from trainprobe.logtext.components import Reading, read_component
from trainprobe.stacks.places import is_native, is_standard, is_user
from trainprobe.waits.log_phases import phase_group
from trainprobe.waits.unfailed_logs import HARMLESS, tells_of_trouble

FRAMES = 12
# Components whose failures are those of the program and of what it asks for.
OF_THE_PROGRAM = frozenset({"user", "framework", "import", "loader", "collectives", "compiler"})
_ITS_OWN = frozenset({"user", "framework", "loader", "collectives"})
_NCCL_WARNS = "NCCL WARN"  # also of what it gets over; an error unwinds through its functions
OF_AN_IMPORT = frozenset({"user", "framework", "import", "software"})


def component_told(scene: Scene) -> Reading | None:
    """Of the suspects' first exception, else of the first failure; None where nothing tells."""
    if component_told not in scene.found:
        scene.found[component_told] = _told(scene)
    found: Reading | None = scene.found[component_told]
    return found


def _told(scene: Scene) -> Reading | None:
    origin, failure = scene.origin, scene.first_failure
    if origin is not None:
        return None if origin.interrupted else component_of_exception(origin)
    if failure is not None:
        if failure.what == "ending" or failure.echo_of == "launcher":
            return None  # who tells of an end is not who came to it
        return read_component(failure.text or failure.says)
    last = _last_line(scene)
    return component_named(last) if last is not None else None


def trouble_told(scene: Scene) -> Reading | None:
    """`component_told`, or the component of the first known line that tells of trouble: where it
    shows, and no reason to think of any cause.
    """
    line = _known_trouble(scene)
    return component_told(scene) or (read_component(line.line) if line is not None else None)


def words_told(scene: Scene, of: Reading) -> str:
    """What was said there: the group's own words, or the line of a log that nothing else knows."""
    last = _last_line(scene) or _known_trouble(scene)
    if scene.origin is None and scene.first_failure is None and last is not None:
        return f"`{short(last.line, 160)}` ({last.seen_at})"
    pair = version_conflict(scene) if of.component.id == "software" else None
    return f"{pair.says}: {scene.group.says}" if pair is not None else scene.group.says


def _last_line(scene: Scene) -> LogEvent | None:
    return next(iter(reversed(scene.events(COMPONENT_LINE))), None)


def _known_trouble(scene: Scene) -> LogEvent | None:
    job = scene.one(LogJob)
    if job is None or scene.group.how != "failed-first" or phase_group(scene.facts, job, ""):
        return None  # the phase at which a log stops tells more
    events = scene.of(LogEvent)
    # what is known to be harmless, and what tells of another one's end
    known = {e.seen_at for e in events if e.event in HARMLESS or e.event == "connection-closed"}
    unwound = any(event.event == "nccl-unwound" for event in events)
    troubled = [
        event
        for event in events
        if event.seen_at not in known
        and tells_of_trouble(event)
        and (unwound if _NCCL_WARNS in event.line else fails(event.line))
    ]
    return min(troubled, key=lambda event: event.place or 0, default=None)


def another_raised(scene: Scene, but: AbstractSet[str]) -> Reading | None:
    """The component that raised the suspects' first exception, where it is none of `but`: then no
    line of the program, and no import, is to blame for it.
    """
    told = component_told(scene) if scene.origin is not None else None
    return told if told is not None and told.component.id not in but else None


def is_the_programs(scene: Scene) -> bool:
    """Whether the suspects' first exception shows a line of the program, and speaks of nothing
    else: then it is surely the program's own.
    """
    origin, told = scene.origin, component_told(scene)
    shown = origin is not None and any(is_user(frame) for frame in origin.frames)
    return shown and (told is None or told.component.id in _ITS_OWN)


def component_of_exception(fact: RankException) -> Reading | None:
    """The component that raised it, where what it says or its innermost frames tell."""
    telling = [
        frame
        for frame in reversed(fact.frames)
        if is_native(frame) or not is_standard(frame) or "multiprocessing" in frame.file
    ][:FRAMES]
    python = (one for one in reversed(fact.frames) if not (is_native(one) or is_standard(one)))
    innermost = next(python, None)
    return read_component(
        text_of(fact),
        [f"{frame.file} {frame.name}".replace("\\", "/") for frame in telling],
        fact.root_type or fact.type,
        own=innermost is not None and is_user(innermost),
        raises=innermost is not None
        and is_user(innermost)
        and innermost.text.lstrip().startswith("raise "),
    )
