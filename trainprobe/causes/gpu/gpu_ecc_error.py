"""A GPU has memory errors that it could not correct.

GPU memory wears out. A row that cannot be corrected ends the program that touched it, or poisons its results; the GPU needs a reset before the next job.

It is recognised by Xid 48, 63, 64, 94 or 95 in the kernel log, by the count of uncorrected errors since the driver was loaded, and by CUDA's
"uncorrectable ECC error". A count of 0 rules out errors in this run.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts, Gpu, Xid
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

ECC = frozenset({48, 63, 64, 94, 95})  # NVIDIA's Xid catalogue: double bit error, row remapping, contained and uncontained errors
WORDING = r"uncorrectable ECC error"


def _xids(facts: Facts) -> tuple[Xid, ...]:
    return tuple(xid for xid in facts.of(Xid) if xid.code in ECC)


def _bad(facts: Facts, group: SuspectGroup) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in facts.of(Gpu, cell=group.cell) if gpu.ecc_uncorrected)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    xids, bad = _xids(facts), _bad(facts, group)
    if xids:
        points = 13 if xids[0].code != 63 else 6  # 63 only says that a row was remapped
        yield weighing(points, "kernel-log", f"The kernel log has Xid {xids[0].code} of GPU {xids[0].device}: {short(xids[0].text, 100)}", *xids)
    if bad:
        yield weighing(10, "gpu", f"GPU {bad[0].index} counts {bad[0].ecc_uncorrected} uncorrected memory errors since its driver was loaded", *bad)
    elif xids and any(gpu.ecc_uncorrected == 0 for gpu in facts.of(Gpu, cell=group.cell)):
        yield weighing(-6, "gpu", "No GPU counts an uncorrected error since its driver was loaded", *facts.of(Gpu, cell=group.cell))
    heard = said(scene, WORDING, scene.world)
    if heard is not None:
        yield weighing(26 if heard.origin else 13, "suspects-log", f"The output says: {short(heard.text, 120)}", heard.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    xids, bad = _xids(facts), _bad(facts, group)
    which = f"GPU {bad[0].index}" if bad else f"GPU {xids[0].device}" if xids else "a GPU"
    return sentence(f"{subject(Scene(facts, group))} uses {which}, whose memory has errors that could not be corrected")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Read the counts", "nvidia-smi -q -d ECC,ROW_REMAPPER"),
        fix(scene, "Reset the GPU after the job has ended", "nvidia-smi --gpu-reset -i INDEX", risk="needs-admin", who="admin"),
        fix(scene, "Take the node out of service", "scontrol update nodename=NODE state=drain reason='ECC'", risk="needs-admin", who="admin"),
    )


CAUSE = Cause(
    id="gpu-ecc-error",
    title="A GPU has memory errors that it could not correct",
    means="A GPU reports memory errors that it could not correct.",
    telling="An uncorrectable ECC error, Xid 48, 63 or 64.",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="nvidia-smi -q -d ECC,ROW_REMAPPER",
    accounts_for=("rank-stuck",),
    wording=WORDING,
)
