"""Processes that got no memory while they imported, as logs tell of them: one may have grown, several at once are in each other's way."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import short
from trainprobe.facts import FatalSignal, RankException
from trainprobe.model.diagnosis import Weighing

MEMORY_WORDS = ("MemoryError", "bad_alloc", "allocate memory", "Out of memory", "out of memory", "Errno 12")
# CPython's import machinery: frozen, or as the file of older versions.
_MACHINERY = ("importlib._bootstrap", "importlib/_bootstrap")


def _starved(scene: Scene) -> tuple[FatalSignal | RankException, ...]:
    """Deaths and exceptions of the cell for want of memory, one per place in the logs."""
    died = [fact for fact in scene.facts.of(FatalSignal, cell=scene.cell) if not fact.echo and _of_memory(f"{fact.exception} {fact.message}")]
    raised = [fact for fact in scene.facts.of(RankException, cell=scene.cell) if not (fact.echo or fact.handled) and _of_memory(f"{fact.type}: {fact.message}")]
    return (*died, *raised)


def _of_memory(text: str) -> bool:
    return any(word in text for word in MEMORY_WORDS) and "CUDA" not in text and "HIP" not in text


def told_by_several(scene: Scene) -> Iterator[Weighing]:
    """At least two processes without memory, of which one stood in an import."""
    starved = _starved(scene)
    importing = [fact for fact in starved if any(part in frame.file for frame in fact.frames for part in _MACHINERY)]
    if len({(fact.rank, fact.place) for fact in starved}) < 2 or not importing:
        return
    where = next((frame for frame in importing[0].frames if not any(part in frame.file for part in _MACHINERY)), None)
    says = f"{len(starved)} processes got no memory, and at least {len(importing)} of them stood in an import"
    yield weighing(26, "suspects-stack", f"{says}{f' at {short(where.where, 80)}' if where is not None else ''}", *starved[:8])


def one_by_one(scene: Scene) -> Iterator[Weighing]:
    """`LOCK:` lines of trainprobe.import_lock say that the ranks came through their imports one after the other."""
    released = scene.events("import-lock-released")
    ranks = {event.captured.get("by") or event.captured.get("pid", "") for event in released}
    if len(ranks) >= 2:
        yield weighing(-13, "suspects-log", f"{len(ranks)} ranks imported one after the other, under trainprobe's import lock", *released[:8])
