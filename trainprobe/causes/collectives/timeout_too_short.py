"""The process group's timeout is shorter than a right step.

Somebody set a timeout of seconds, or a step is longer than the default of 10 (NCCL) or 30 minutes
(gloo). The slow rank is at work, and the others give up just before it comes.

It is recognised by a short timeout together with a rank that still works while the others have
waited for much of it. A rank that stands still rules it out: no timeout is long enough for that.

It is foretold where start-up, which each rank waits for the slowest in, will take longer than the
timeout at the planned size.

Of a log a limit of seconds counts, and work of a rank that goes on after the others gave up; the
limit alone names nothing.
"""

from __future__ import annotations

import math

from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import SHORT_S, away
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.lone_workers import waited, working
from trainprobe.causes.long_tasks import of_short_timeout
from trainprobe.causes.phrases import Fixes, fixes, subject, verb
from trainprobe.causes.predicted import foreseen, grows_too_fast, needed, too_long, weigh_foreseen
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.waits.divergence import call_says
from trainprobe.waits.measured_series import STARTUP


def _weigh(scene: Scene) -> Weighings:
    prediction = foreseen(scene.group, STARTUP)
    yield from weigh_foreseen(
        prediction,
        6
        if prediction is not None and (grows_too_fast(prediction) or too_long(prediction))
        else 26,
    )
    if scene.group.mode == "check":
        return
    yield from of_short_timeout(scene, Timeouts(scene))
    if scene.group.mode == "crash":
        return
    slept, limit, limits = waited(scene)
    at_work = working(scene)
    if not limit or limit > SHORT_S or not scene.others:
        return
    if not at_work:
        threads = [thread for thread in scene.threads(scene.ranks) if thread.moved is False]
        if threads:
            yield weighing(
                -26, "suspects-stack", f"Rank {threads[0].rank} does not work at all", *threads
            )
        return
    thread, doing = at_work[0]
    says = f"The group's timeout is only {limit:.0f} s, and {slept:.0f} s of it have passed"
    yield weighing(13, "scheduler", says, *limits)
    says = f"Rank {thread.rank} is still at work ({doing}) at {thread.where}"
    yield weighing(13, "suspects-stack", says, thread)


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, STARTUP)) is not None:
        return f"Start-up will take longer than the ranks wait for each other: {prediction.says}"
    timeouts = Timeouts(scene)
    if timeouts.timeout_s:
        return (
            f"The ranks gave up in {call_says(timeouts.calls[0])} after only"
            f" {timeouts.timeout_s:.0f} s:"
            " the limit of the process group is shorter than that step"
        )
    slept, limit, _limits = waited(scene)
    left = max(limit - slept, 0)
    return (
        f"{subject(scene)} {verb(scene.ranks, 'is', 'are')} at work, and the others give up in"
        f" {left:.0f} s: the timeout is only {limit:.0f} s"
    )


PREPARE = """
Prepare the data once, before the ranks start
    one process builds and saves it; the ranks then only open it
"""
LONGER = """
A longer timeout
    init_process_group(..., timeout=timedelta(minutes={minutes}))
    {trainer}
"""
BARRIER = """
Or a barrier of its own around the long part
    dist.monitored_barrier(group=long_group, timeout=timedelta(hours=2))
"""


def _fixes(scene: Scene) -> Fixes:
    prediction = foreseen(scene.group, STARTUP)
    if prediction is None:
        return fixes(LONGER + BARRIER.lstrip("\n"), minutes=30, trainer="")
    minutes = max(30, 10 * math.ceil(needed(prediction) / 600))
    trainer = f"transformers: --ddp_timeout {60 * minutes}"
    # No timeout is long enough for such growth.
    endless = grows_too_fast(prediction) or too_long(prediction)
    longer = () if endless else fixes(LONGER, minutes=minutes, trainer=trainer)
    return (*fixes(PREPARE), *longer, *fixes(BARRIER))


CAUSE = Cause(
    id="timeout-too-short",
    title="The process group's timeout is shorter than a right step",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=lambda scene: (
        () if scene.group.foreseen is not None else away(Timeouts(scene), task=True) or scene.ranks
    ),
    would_settle=(
        "grep -n timeout in the script, and trainprobe attach --watch 5: does that rank move on?"
    ),
    refines="rank0-long-task",
    accounts_for=("rank-stuck", "straggler-rank"),
)
