"""One process that spreads over several GPUs by threads: who made the wrapper, how the program was started, and what its source says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import short
from trainprobe.facts import DataParallelMade, Plan, SourceSite
from trainprobe.model.diagnosis import Weighing

LAUNCHER = re.compile(r"(?:^|/)(?:torchrun|accelerate|deepspeed|mpirun|srun)$|torch\.distributed\.(?:run|launch)$")
WRITTEN = re.compile(r"(?<!Distributed)\bDataParallel\(")


def made_at(made: DataParallelMade) -> str:
    """` at trainer.py:2672 in _wrap_model, for train.py:40 in <module>`; nothing where the place is unknown."""
    by, user = made.by, made.user
    return f" at {by.where}" + (f", for {user.where}" if made.unasked and user is not None else "") if by is not None else ""


def launched_plainly(scene: Scene) -> Iterator[Weighing]:
    """Weigh that the user's command names no launcher."""
    plan = scene.facts.one(Plan)
    if plan is not None and plan.form == "command" and plan.argv and not any(LAUNCHER.search(word) for word in plan.argv):
        yield weighing(6, "environment-and-limits", f"It is started as `{short(' '.join(plan.argv), 60)}`, without a launcher", plan)


def written(scene: Scene) -> Iterator[Weighing]:
    """The wrapper in the source around the suspects' frames, where one process is all there is."""
    if len(scene.world) > 1:
        return
    sites = [site for site in scene.facts.of(SourceSite, cell=scene.cell) if any(WRITTEN.search(text) for text in (site.text, *(b.text for b in site.blocks)))]
    if sites:
        yield weighing(6, "source", f"The source wraps the model at {sites[0].file.rsplit('/', 1)[-1]}:{sites[0].line}: {short(sites[0].text, 80)}", *sites[:1])
