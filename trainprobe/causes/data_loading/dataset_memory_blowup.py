"""Each rank or loader worker ends up with its own copy of the dataset.

Millions of Python objects in a list are shared after a fork only until they are looked at: counting
references writes to every page. Memory grows with workers and steps while the main process stays
flat, until the kernel kills somebody.

It is recognised by loader workers whose own memory grows while their parent's does not, between two
looks at a live job and a minute or more after their start, or in the measurements
`loader.worker_growth` and `loader.parent_growth` (bytes over one epoch). Workers that stay flat
rule it out. It is foretold where memory will not do at the planned size, and grows with the data by
so much more for each worker.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import measures
from trainprobe.causes.phrases import MIB, Fixes, fix, size
from trainprobe.causes.predicted import (
    COPIED,
    SHARED,
    elsewhere,
    fewer_workers,
    foreseen,
    weigh_foreseen,
)
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Measured, ProcessState

GREW = 64 * MIB  # above what a worker needs for its first batches
WARM_S = 60.0  # by then a worker has imported what it needs and handed out its first batches
FLAT = 0.25  # a parent that grew by less than this share of its workers' growth is flat


def _grown(scene: Scene) -> tuple[ProcessState, ...]:
    """Loader workers that grew between two looks, long after their start."""
    found = [fact for rank in scene.suspects for fact in scene.of(ProcessState, rank=rank)]
    return tuple(
        fact
        for fact in found
        if fact.role == "loader-worker"
        and (fact.grew_bytes or 0) >= GREW
        and (fact.age_s is None or fact.age_s >= WARM_S)
    )


def _parent_grew(scene: Scene) -> int:
    found = [state for rank in scene.suspects if (state := scene.process(rank)) is not None]
    return max((state.grew_bytes or 0 for state in found), default=0)


def _measured(scene: Scene) -> tuple[Measured | None, Measured | None]:
    worker, parent = (
        max(measures(scene, name), key=lambda fact: fact.value, default=None)
        for name in ("loader.worker_growth", "loader.parent_growth")
    )
    return worker, parent


def _weigh(scene: Scene) -> Weighings:
    if elsewhere(scene.group, "pss"):
        return
    prediction = foreseen(scene.group, "pss")
    if prediction is not None and prediction.copies is not None:
        yield from weigh_foreseen(
            prediction,
            26 if prediction.copies >= COPIED else -26 if prediction.copies <= SHARED else -6,
        )
        return
    worker, parent = _measured(scene)
    if worker is not None and parent is not None:
        if worker.value >= GREW and parent.value < FLAT * worker.value:
            says = (
                f"A worker grew by {size(worker.value)} in one epoch, its parent by"
                f" {size(parent.value)}"
            )
            yield weighing(26, "probe-outcome", says, worker, parent)
        else:
            says = f"Workers stayed flat: they grew by {size(worker.value)}"
            yield weighing(-26, "probe-outcome", says, worker, parent)
    grown = _grown(scene)
    if grown and _parent_grew(scene) < FLAT * (grown[0].grew_bytes or 0):
        says = (
            f"Loader worker {grown[0].pid} grew by {size(grown[0].grew_bytes)} between the looks,"
            " its parent did not"
        )
        yield weighing(13, "host-pressure", says, *grown)
    killed = [kill for kill in scene.oom_kills if worker is not None or grown]
    if killed:
        yield weighing(6, "kernel-log", "The kernel killed for want of memory", *killed[:1])


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, "pss")) is not None and prediction.copies is not None:
        return (
            f"Each loader worker holds {prediction.copies:.0%} of the data again, and memory"
            " will not do:"
            f" {prediction.says}"
        )
    worker, _ = _measured(scene)
    grown = _grown(scene)
    amount = "more and more"
    if worker is not None:
        amount = size(worker.value)
    elif grown:
        amount = size(grown[0].grew_bytes)
    return (
        f"Each loader worker makes its own copy of the dataset page by page: one grew by {amount}"
        " while its parent stayed flat"
    )


def _fixes(scene: Scene) -> Fixes:
    prediction = foreseen(scene.group, "pss")
    return (
        *(fewer_workers(scene, prediction) if prediction is not None else ()),
        fix(
            "Keep samples where forks share them",
            "one numpy or torch array (paths as bytes, offsets as int64) in place of a list of"
            " Python objects",
        ),
        fix("Or on disk", "Arrow (datasets), np.load(..., mmap_mode='r'), webdataset"),
        fix(
            "Fewer copies until then",
            "fewer num_workers; persistent_workers=False frees them after each epoch",
        ),
    )


CAUSE = Cause(
    id="dataset-memory-blowup",
    title="The dataset is copied in every worker",
    modes=("crash", "slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "the workers' private memory at the start and at the end of an epoch: grep Private_Dirty"
        " /proc/<PID>/smaps_rollup"
    ),
    refines="host-oom-killed",
    accounts_for=("data-starvation",),
)
