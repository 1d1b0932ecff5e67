"""How many batches the ranks' loaders gave, as the witness counted them."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.scene import Scene
from trainprobe.facts import Progress
from trainprobe.model.ranks import and_list

SURE = 2  # batches: a rank may rightly be one behind when the run ends


@dataclass(frozen=True)
class BatchCounts:
    """Batches of the suspects and of the others; `apart` is how many fewer the suspects got."""

    apart: int
    says: str
    facts: tuple[Progress, ...]


def batch_counts(scene: Scene) -> BatchCounts | None:
    """The ranks' loader lengths if they differ, else their batches; None if neither was counted."""
    return _lengths(scene) or _given(scene)


def _lengths(scene: Scene) -> BatchCounts | None:
    """The first loader that is shorter on the suspects than on every other rank."""
    mine = [fact for fact in scene.progress(scene.ranks) if fact.loader_batches]
    theirs = [fact for fact in scene.progress(scene.others) if fact.loader_batches]
    if not mine or not theirs:
        return None
    for place in range(min(len(fact.loader_batches) for fact in (*mine, *theirs))):
        apart = min(fact.loader_batches[place] for fact in theirs) - max(
            fact.loader_batches[place] for fact in mine
        )
        if apart > 0:
            parts = [
                f"rank {fact.rank}'s loader has {fact.loader_batches[place]} batches"
                for fact in (*mine[:2], *theirs[:2])
            ]
            return BatchCounts(max(apart, SURE), and_list(parts), (*mine, *theirs))
    return None


def _given(scene: Scene) -> BatchCounts | None:
    mine = [fact for fact in scene.progress(scene.ranks) if fact.batches]
    theirs = [fact for fact in scene.progress(scene.others) if fact.batches]
    if not mine or not theirs:
        return None
    parts = [f"rank {fact.rank} had {fact.batches} batches" for fact in (*mine[:2], *theirs[:2])]
    apart = min(fact.batches or 0 for fact in theirs) - max(fact.batches or 0 for fact in mine)
    return BatchCounts(apart, and_list(parts), (*mine, *theirs))
