"""The NVIDIA driver is older than the CUDA that torch was built for.

Each CUDA release needs a least driver. On an older one the first CUDA call fails: "The NVIDIA driver on your system is too old", or "CUDA driver
version is insufficient" (error 35).

It is recognised by those words, and by the environment check, which compares the two versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene
from trainprobe.causes.spoken import advice, checked, first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/csrc/cuda and the CUDA runtime's cudaErrorInsufficientDriver (35).
WORDING = r"driver on your system is too old|driver version is insufficient|cudaErrorInsufficientDriver|forward compatibility was attempted on non supported HW"
CHECK = "drv.versions"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    yield from spoken(scene, WORDING, log_points=26)
    if heard is not None:
        yield from first_to_fail(scene)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    check, heard = next(iter(scene.checks(CHECK)), None), said(scene, WORDING)
    return sentence(check.says if check is not None else short(heard.text, 160) if heard is not None else "The NVIDIA driver is older than torch needs")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    more = advice(scene, CHECK)
    return (
        fix(
            scene,
            "Update the driver, or take an older build",
            *(more or ("nvidia-smi | head -4   (shows the newest CUDA that the driver knows)",)),
            who="admin",
            risk="needs-admin",
            verify="nvidia-smi",
        ),
        fix(scene, "Without the administrator", "pip install a torch that was built for the CUDA that nvidia-smi shows"),
    )


CAUSE = Cause(
    id="driver-too-old",
    title="The NVIDIA driver is too old",
    means="The driver is older than torch's CUDA runtime needs.",
    telling="Driver too old (found version N), or CUDA error 35.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="nvidia-smi beside torch.version.cuda",
    refines="user-exception",
    wording=WORDING,
)
