"""What a cause says of a limit that the planned size will meet: nothing has failed yet, and the
numbers tell that it will.
"""

from __future__ import annotations

import math

from trainprobe.causes.commands import OF_THE_COMMAND, diagnose
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.model.diagnosis import Weighing
from trainprobe.model.predictions import Prediction
from trainprobe.scaling import STEEP
from trainprobe.waits import SuspectGroup

COPIED = 0.3  # of the data again in each worker: less is what a worker takes for itself
SHARED = 0.1
REASONABLE_S = 6 * 3600.0
ROOM = 1.25  # over the upper end of the interval, for what the fix advises


def foreseen(group: SuspectGroup, *names: str) -> Prediction | None:
    """The prediction that this group is about, where it is of one of these numbers."""
    one = group.foreseen
    return one if one is not None and one.will_hit and one.name in names else None


def elsewhere(group: SuspectGroup, *names: str) -> bool:
    """Is this group about a prediction of another number?"""
    return group.foreseen is not None and group.foreseen.name not in names


def weigh_foreseen(one: Prediction | None, points: int = 26) -> Weighings:
    """The prediction itself as evidence."""
    if one is not None:
        says = f"{capital(one.says)} (by {len(one.points)} measured sizes)"
        yield Weighing(points, "probe-outcome", says, one.evidence)


def too_long(one: Prediction) -> bool:
    """Would such a timeout be useless, since a dead rank is found only after hours?"""
    return needed(one) > REASONABLE_S


def grows_too_fast(one: Prediction) -> bool:
    """By a law that is steeper than a sort, clear or the likeliest of those that are left open."""
    return one.steep is True or (one.steep is None and (one.exponent or 0.0) > STEEP)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def needed(one: Prediction) -> float:
    """What to ask for: the upper end of the interval with some room."""
    return ROOM * (one.high or 0.0)


def power_of_two(value: float) -> int:
    """The next power of two, as limits are given."""
    return 1 << max(0, math.ceil(math.log2(max(value, 1.0))))


def fewer_workers(scene: Scene, one: Prediction) -> Fixes:
    """The number of workers that fits, where there is one and it is less than planned."""
    planned = one.at.get("workers")
    if one.safe_workers is None or not planned or one.safe_workers >= planned:
        return ()
    most = one.safe_workers
    says = (
        f"num_workers={most}   (for each rank; {planned} are planned, and {most} stay below the"
        " limit with all of the interval)"
    )
    return (fix("Use as many workers as fit", says, verify=again_planned(scene, one, most)),)


def again_planned(scene: Scene, one: Prediction, workers: int | None = None) -> str:
    """The command that predicts once more; of what the data showed, without the user's command."""
    plan = scene.plan
    of_data = bool(plan.dataset) and one.probe != OF_THE_COMMAND
    return diagnose(
        scene,
        (one.probe,) if of_data else (),
        rows=plan.rows,
        workers=workers,
        command=one.probe == OF_THE_COMMAND,
    )
