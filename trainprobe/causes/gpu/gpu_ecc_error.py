"""A GPU has memory errors that it could not correct.

GPU memory wears out. A row that cannot be corrected ends the program that touched it, or poisons
its results; the GPU needs a reset before the next job.

It is recognised by Xid 48, 63, 64, 94, 95 or 140 in the kernel log, by the count of uncorrected
errors since the driver was loaded, and by CUDA's "uncorrectable ECC error", which NCCL repeats in
its own words. A count of 0 speaks against errors in this run.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import admin_fix, fix, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement
from trainprobe.causes.xids import of_cause, weigh_xids
from trainprobe.facts import Gpu
from trainprobe.signatures.messages import message

WORDING = message("gpu-ecc-error")


def _counted(scene: Scene) -> Weighings:
    bad = _bad(scene)
    if bad:
        count = bad[0].ecc_uncorrected
        says = (
            f"GPU {bad[0].index} counts {count} uncorrected memory errors since its driver loaded"
        )
        yield weighing(10, "gpu", says, *bad)
    elif of_cause(scene, CAUSE.id) and any(gpu.ecc_uncorrected == 0 for gpu in scene.of(Gpu)):
        says = "No GPU counts an uncorrected error since its driver was loaded"
        yield weighing(-6, "gpu", says, *scene.of(Gpu))


def _bad(scene: Scene) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in scene.of(Gpu) if gpu.ecc_uncorrected)


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_xids(scene, CAUSE.id)
    yield from _counted(scene)
    found = statement(scene, WORDING, scene.world)
    if found is not None:
        yield quote(26 if found.origin else 13, "The output says", found)
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    xids, bad = of_cause(scene, CAUSE.id), _bad(scene)
    index = bad[0].index if bad else xids[0].device if xids else ""
    gpu = f"GPU {index}" if index != "" else "a GPU"
    code = f" (Xid {xids[0].code})" if xids else ""
    whose = f"{gpu}, whose memory" if gpu != "a GPU" else "a GPU whose memory"
    return f"{subject(scene)} uses {whose} has errors that could not be corrected{code}"


CAUSE = Cause(
    id="gpu-ecc-error",
    title="A GPU has memory errors that it could not correct",
    modes=("hang", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix("Read the counts", "nvidia-smi -q -d ECC,ROW_REMAPPER"),
        admin_fix("Reset the GPU after the job has ended", "nvidia-smi --gpu-reset -i INDEX"),
        admin_fix(
            "Take the node out of service",
            "scontrol update nodename=<NODE> state=drain reason='ECC'",
        ),
    ),
    would_settle="nvidia-smi -q -d ECC,ROW_REMAPPER",
    refines="user-exception",
    accounts_for=("rank-stuck", "illegal-memory-access", "native-crash", "rank-killed"),
    wording=WORDING,
    ready=ReadySigns(
        says=("has a GPU with memory errors", "have GPUs with memory errors"),
        checks=("drv.ecc", "drv.remap"),
    ),
)
