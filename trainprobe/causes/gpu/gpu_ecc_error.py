"""A GPU has memory errors that it could not correct.

GPU memory wears out. A row that cannot be corrected ends the program that touched it, or poisons its results; the GPU needs a reset before the next job.

It is recognised by Xid 48, 63, 64, 94, 95 or 140 in the kernel log, by the count of uncorrected errors since the driver was loaded, and by CUDA's
"uncorrectable ECC error", which NCCL repeats in its own words. A count of 0 speaks against errors in this run.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.causes.xids import of_cause, weigh_xids
from trainprobe.facts import Facts, Gpu
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

WORDING = r"[Uu]ncorrectable ECC error|cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE|hipErrorECCNotCorrectable|double bit error \(DBE\)|Double Bit ECC"


def _bad(facts: Facts, group: SuspectGroup) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in facts.of(Gpu, cell=group.cell) if gpu.ecc_uncorrected)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    bad = _bad(facts, group)
    xids = of_cause(scene, CAUSE.id)
    yield from weigh_xids(scene, CAUSE.id)
    if bad:
        yield weighing(10, "gpu", f"GPU {bad[0].index} counts {bad[0].ecc_uncorrected} uncorrected memory errors since its driver was loaded", *bad)
    elif xids and any(gpu.ecc_uncorrected == 0 for gpu in facts.of(Gpu, cell=group.cell)):
        yield weighing(-6, "gpu", "No GPU counts an uncorrected error since its driver was loaded", *facts.of(Gpu, cell=group.cell))
    heard = said(scene, WORDING, scene.world)
    if heard is not None:
        yield weighing(26 if heard.origin else 13, "suspects-log", f"The output says: {short(heard.text, 120)}", heard.fact)
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    xids, bad = of_cause(scene, CAUSE.id), _bad(facts, group)
    device = xids[0].device if xids else ""
    which = f"GPU {bad[0].index}" if bad else f"GPU {device}" if device else "a GPU"
    code = f" (Xid {xids[0].code})" if xids else ""
    return sentence(f"{subject(scene)} uses {which}, whose memory has errors that could not be corrected{code}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Read the counts", "nvidia-smi -q -d ECC,ROW_REMAPPER"),
        fix(scene, "Reset the GPU after the job has ended", "nvidia-smi --gpu-reset -i INDEX", risk="needs-admin", who="admin"),
        fix(scene, "Take the node out of service", "scontrol update nodename=<NODE> state=drain reason='ECC'", risk="needs-admin", who="admin"),
    )


CAUSE = readied(
    Cause(
        id="gpu-ecc-error",
        title="A GPU has memory errors that it could not correct",
        means="A GPU reports memory errors that it could not correct.",
        telling="An uncorrectable ECC error, Xid 48, 63 or 64.",
        modes=("hang", "crash", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        would_settle="nvidia-smi -q -d ECC,ROW_REMAPPER",
        refines="user-exception",
        accounts_for=("rank-stuck", "illegal-memory-access", "native-crash", "rank-killed"),
        wording=WORDING,
    ),
    Signs(says=("has a GPU with memory errors", "have GPUs with memory errors"), checks=("drv.ecc", "drv.remap")),
)
