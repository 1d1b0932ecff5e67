"""The dataset arrives in the other process empty, or shorter than it left.

A `__getstate__` that leaves out what `__setstate__` does not load again, a weak reference, a
generator: the pickled copy that a spawned worker gets is not the dataset.

It is recognised only where it was measured: length, keys or values of a sample before and after a
round trip through pickle, or in the parent and in a worker (`dataset.length`, `dataset.keys`,
`dataset.digest`, told apart by their label `where`). Empty samples alone are often another cause's,
such as `trainer-removed-columns`; a round trip that keeps everything rules it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import measures
from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Measured

NAMES = ("dataset.length", "dataset.keys", "dataset.digest", "dataset.empty_samples")
BEFORE = "parent"


def _pairs(scene: Scene) -> tuple[tuple[Measured, Measured], ...]:
    """Each number of the parent beside the same of a pickled copy or of a worker."""
    found = measures(scene, *NAMES)
    carried = {fact.name: fact.value for fact in found if fact.labels.get("where") == "pickled"}
    parents = {fact.name: fact for fact in found if fact.labels.get("where") == BEFORE}
    pairs = [
        (parents[fact.name], fact)
        for fact in found
        if fact.labels.get("where") not in (BEFORE, None) and fact.name in parents
    ]
    # A forked worker inherits the data set: where pickle keeps it whole and only such a worker sees
    # another, pickle is not at fault.
    return tuple(
        pair
        for pair in pairs
        if pair[1].labels.get("where") != "worker"
        or carried.get(pair[0].name, pair[1].value) != pair[0].value
    )


def _lost(scene: Scene) -> tuple[Measured, Measured] | None:
    """The first pair that differs, lengths first."""
    bad = [pair for pair in _pairs(scene) if pair[0].value != pair[1].value]
    return min(bad, key=lambda pair: NAMES.index(pair[0].name), default=None)


def _says(pair: tuple[Measured, Measured]) -> str:
    before, after = pair
    where = {
        "pickled": "after a round trip through pickle",
        "worker": "in a worker",
        "worker-spawn": "in a spawned worker",
    }.get(str(after.labels.get("where")), "in the other process")
    if before.name == "dataset.digest":
        return f"The values of a sample differ {where}"
    if before.name == "dataset.empty_samples":
        return f"Samples come back empty {where}"
    what = "samples" if before.name == "dataset.length" else "keys of a sample"
    return f"{before.value:g} {what} in the parent are {after.value:g} {where}"


def _weigh(scene: Scene) -> Weighings:
    lost, pairs = _lost(scene), _pairs(scene)
    if lost is not None:
        yield weighing(26, "probe-outcome", _says(lost), *lost)
    elif pairs:
        says = "The dataset is the same after a round trip through pickle"
        yield weighing(-26, "probe-outcome", says, *pairs[0])


def _summary(scene: Scene) -> str:
    lost = _lost(scene)
    if lost is not None:
        return f"The dataset does not survive pickling: {_says(lost)}"
    return "The dataset does not survive pickling"


CAUSE = Cause(
    id="dataset-lost-in-pickling",
    title="The dataset does not survive pickling",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        See it in one line
            copy = pickle.loads(pickle.dumps(dataset)); print(len(dataset), len(copy),
                dataset[0].keys(), copy[0].keys())
        Pickle paths and indices, and load again
            __getstate__ returns the paths; __setstate__ opens or memory-maps them
    """),
    ranks=nobody,
    would_settle=(
        "copy = pickle.loads(pickle.dumps(dataset)); compare len() and the keys of a sample"
    ),
    accounts_for=("user-exception", "bad-sample"),
)
