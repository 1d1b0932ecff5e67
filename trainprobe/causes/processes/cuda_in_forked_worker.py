"""A forked process uses CUDA although its parent had already used it.

A CUDA context does not survive a fork. A dataset that moves tensors to the GPU inside a loader
worker, or a map function that does so in a forked pool, fails with "Cannot re-initialize CUDA in
forked subprocess".

`datasets.map(num_proc=1)` forks from datasets 4.1 on and did not in 4.0; `num_proc=None` never does
(by the sources of 4.0.0, 4.1.0 and 5.2.0).

With torch's MPS on a Mac this was not reproduced here; there workers are spawned by default.

It is recognised by that message; by the probe that imports and builds what the script does and
forks; in a forked child below torch's own check, by CUDA's "initialization error" inside a worker.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.fork_probe import tried, value_of, weigh_tried
from trainprobe.causes.phrases import Fixes, fix, fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_message
from trainprobe.model.diagnosis import Fix
from trainprobe.signatures.messages import message

WORDING = message("cuda-in-forked-worker")
POISONED = message("cuda-in-forked-worker.poisoned")
MAPS = (
    "datasets/arrow_dataset.py",
    "datasets/utils/py_utils.py",
    "multiprocess/pool.py",
    "datasets\\arrow_dataset.py",
)
FORKS_AT_ONE = (4, 1)  # the first datasets whose map(num_proc=1) starts a process


def _weigh(scene: Scene) -> Weighings:
    poisoned, origin = statement(scene, POISONED), scene.origin
    yield from weigh_tried(tried(scene, "cuda"))
    if (yield from weigh_message(scene, WORDING)) is None and poisoned is not None:
        in_worker = origin is not None and (
            origin.worker is not None
            or any(frame.name == "_worker_loop" for frame in origin.frames)
        )
        forked = (
            in_worker
            or _maps(scene)
            or statement(scene, r"Caught \w+ in DataLoader worker") is not None
        )
        if forked:
            says = f"CUDA could not start in a forked worker: {poisoned.match.group(0)}"
            yield weighing(26, "suspects-log", says, poisoned.fact)
            yield from first_to_fail(scene)
    version, forks = scene.given("version.datasets"), _map_forks(scene)
    if (
        version is not None
        and _maps(scene)
        and (statement(scene, WORDING) is not None or poisoned is not None)
    ):
        says = (
            f"datasets {version.value}: map(num_proc=1)"
            f" {'starts a process' if forks else 'does not, only 2 and more do'}"
        )
        yield weighing(6 if forks else 3, "environment-and-limits", says, version)


def _maps(scene: Scene) -> bool:
    """Was it inside datasets.map?"""
    origin = scene.origin
    return origin is not None and any(
        part in frame.file for frame in origin.frames for part in MAPS
    )


def _map_forks(scene: Scene) -> bool | None:
    """Does map(num_proc=1) fork with this version of datasets? None if unknown."""
    for check in scene.checks("fork.datasets_map", bad_only=False):
        measured = value_of(check).get("forks_at_one")
        if isinstance(measured, bool):
            return measured
    version = scene.given("version.datasets")
    numbers = re.findall(r"\d+", version.value)[:2] if version is not None else []
    return tuple(int(number) for number in numbers) >= FORKS_AT_ONE if len(numbers) == 2 else None


def _summary(scene: Scene) -> str:
    frame = scene.own_frame
    failure = tried(scene, "cuda")
    step = _first_touch(scene)
    by = f": {step} initialises it" if step else ""
    where = ""
    if failure is not None and failure.details.get("where"):
        where = f" at {failure.details.get('where')}"
    elif frame:
        where = f" at {frame.where}"
    return f"A forked worker uses CUDA{where} although its parent had already used it{by}"


def _first_touch(scene: Scene) -> str:
    """The import or step of the script that initialised CUDA in the probe."""
    return next(
        (
            f"`{step}`"
            for check in scene.checks("fork.cuda")
            if isinstance(step := value_of(check).get("step"), str) and step
        ),
        "",
    )


FIXES = """
Keep workers on the CPU
    return CPU tensors{where}; move the batch in the training loop: batch.to(device,
        non_blocking=True)
Or start workers by spawn
    DataLoader(..., multiprocessing_context='spawn')
"""


def _fixes(scene: Scene) -> Fixes:
    found: list[Fix] = []
    if _maps(scene):
        since = "1 starts one from datasets 4.1 on"
        if _map_forks(scene) is False:
            since = "or 1: yours forks from 2 on"
        found.append(
            fix("Do not let map start a process", f"dataset.map(..., num_proc=None)   ({since})")
        )
    if step := _first_touch(scene):
        move = "move what does so behind the first batch of the loaders"
        found.append(fix("Touch the GPU later", f"{step} initialises CUDA: {move}"))
    return (*found, *fixes(FIXES, where=scene.at_own_line or " from the dataset"))


CAUSE = Cause(
    id="cuda-in-forked-worker",
    title="CUDA is used in a forked process",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="num_workers=0, which has no forked process",
    refines="user-exception",
    accounts_for=("bad-sample",),
    wording=WORDING,
)
