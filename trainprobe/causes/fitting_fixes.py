"""Which fixes fit the place where a job runs: commands of a scheduler only under that scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from trainprobe.causes.phrases import Fixes
from trainprobe.causes.scene import Scene
from trainprobe.facts import LogEvent, LogJob, RankEnding
from trainprobe.model.diagnosis import Fix

_COMMAND = re.compile(
    r"(?:sudo )?(?:scontrol|sbatch|sacct|squeue|#SBATCH) (?!.*(?:docker|kubectl))"
)
_TOLD = re.compile(r"(?i)\bslurm|\bsrun\b|\bsbatch\b")


def fitting(scene: Scene, fixes: Iterable[Fix]) -> Fixes:
    """`fixes` without Slurm's commands where nothing that was seen of the job tells of Slurm; all
    of them where too little was seen to say so.
    """
    fixes = tuple(fixes)
    if _under_slurm(scene):
        return fixes
    rest = (
        replace(one, steps=tuple(step for step in one.steps if not _COMMAND.match(step)))
        for one in fixes
    )
    return tuple(one for one in rest if one.steps) or fixes


def _under_slurm(scene: Scene) -> bool:
    job = scene.live
    if job is not None:
        names = {name for row in job.environment.values() for name in row}
        return job.launcher == "slurm" or any(name.startswith("SLURM_") for name in names)
    logs = scene.of(LogJob)
    if not logs:
        return True
    return (
        any(log.launcher == "slurm" for log in logs)
        or any(ending.role == "scheduler" for ending in scene.of(RankEnding))
        or any(_TOLD.search(event.line) for event in scene.of(LogEvent))
        or any(_TOLD.search(log.last_text) for log in logs)
    )
