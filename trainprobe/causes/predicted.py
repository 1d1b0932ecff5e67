"""Limits that the planned size will meet: nothing has failed yet, and the numbers tell."""

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
    prediction = group.foreseen
    if prediction is not None and prediction.will_hit and prediction.name in names:
        return prediction
    return None


def elsewhere(group: SuspectGroup, *names: str) -> bool:
    """Is this group about a prediction of another number?"""
    return group.foreseen is not None and group.foreseen.name not in names


def weigh_foreseen(prediction: Prediction | None, points: int = 26) -> Weighings:
    """The prediction itself as evidence."""
    if prediction is not None:
        says = f"{capital(prediction.says)} (by {len(prediction.points)} measured sizes)"
        yield Weighing(points, "probe-outcome", says, prediction.evidence)


def too_long(prediction: Prediction) -> bool:
    """Would such a timeout be useless, since a dead rank is found only after hours?"""
    return needed(prediction) > REASONABLE_S


def grows_too_fast(prediction: Prediction) -> bool:
    """By a law that is steeper than a sort, clear or the likeliest of those that are left open."""
    return prediction.steep is True or (
        prediction.steep is None and (prediction.exponent or 0.0) > STEEP
    )


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def needed(prediction: Prediction) -> float:
    """What to ask for: the upper end of the interval with some room."""
    return ROOM * (prediction.high or 0.0)


def power_of_two(value: float) -> int:
    """The next power of two, as limits are given."""
    return 1 << max(0, math.ceil(math.log2(max(value, 1.0))))


def fewer_workers(scene: Scene, prediction: Prediction) -> Fixes:
    """The number of workers that fits, where there is one and it is less than planned."""
    planned = prediction.at.get("workers")
    if prediction.safe_workers is None or not planned or prediction.safe_workers >= planned:
        return ()
    most = prediction.safe_workers
    says = (
        f"num_workers={most}   (for each rank; {planned} are planned, and {most} stay below the"
        " limit with all of the interval)"
    )
    return (fix("Use as many workers as fit", says, verify=again_planned(scene, prediction, most)),)


def again_planned(scene: Scene, prediction: Prediction, workers: int | None = None) -> str:
    """The command that predicts once more; of what the data showed, without the user's command."""
    plan = scene.plan
    of_data = bool(plan.dataset) and prediction.probe != OF_THE_COMMAND
    return diagnose(
        scene,
        (prediction.probe,) if of_data else (),
        rows=plan.rows,
        workers=workers,
        command=prediction.probe == OF_THE_COMMAND,
    )
