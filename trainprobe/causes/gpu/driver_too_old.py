"""The NVIDIA driver is older than the CUDA that torch was built for, or there is none.

Each CUDA release needs a least driver. On an older one the first CUDA call fails: "The NVIDIA driver on your system is too old", or "CUDA driver
version is insufficient" (error 35). A container started without the GPU runtime has no driver at all, and says "Found no NVIDIA driver".

It is recognised by those words, by code that the driver cannot translate (error 222), and by the environment check, which compares the two versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/csrc/cuda and the CUDA runtime's errors 35 (insufficient), 36 (needs a newer driver) and 222 (unsupported PTX).
WORDING = (
    r"driver on your system is too old|driver version is insufficient|cudaErrorInsufficientDriver|not supported in the installed CUDA driver"
    r"|cudaErrorCallRequiresNewerDriver|PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    r"|which is too old for CUDA version"
)
NONE_AT_ALL = r"Found no NVIDIA driver on your system|Failed to initialize NVML: Driver Not Loaded"
COMPATIBILITY = r"forward compatibility was attempted on non supported HW|cudaErrorCompatNotSupportedOnDevice|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
CHECK = "drv.versions"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, none, compatibility = said(scene, WORDING), said(scene, NONE_AT_ALL), said(scene, COMPATIBILITY)
    yield from spoken(scene, WORDING, log_points=26)
    if heard is not None:
        yield from first_to_fail(scene)
    elif none is not None:
        yield weighing(13, "suspects-log", f"There is no driver: {short(none.text, 120)}", none.fact)
    elif compatibility is not None:  # a CUDA of the container that is newer than the driver, or a driver updated in part
        yield weighing(3, "suspects-log", f"CUDA is newer than the driver: {short(compatibility.text, 120)}", compatibility.fact)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    check, heard = next(iter(scene.checks(CHECK)), None), said(scene, WORDING) or said(scene, NONE_AT_ALL)
    return sentence(check.says if check is not None else short(heard.text, 160) if heard is not None else "The NVIDIA driver is older than torch needs")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    more = advice(scene, CHECK)
    if said(scene, WORDING) is None and said(scene, NONE_AT_ALL) is not None:
        return (
            fix(scene, "Let the container see the GPU", "docker run --gpus all …; resources.limits: nvidia.com/gpu in Kubernetes", verify="nvidia-smi"),
            fix(scene, "Ask the scheduler for one", "sbatch --gres=gpu:N, and run nvidia-smi inside the job", verify="nvidia-smi"),
        )
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


CAUSE = readied(
    Cause(
        id="driver-too-old",
        title="The NVIDIA driver is too old, or missing",
        means="The driver is older than torch's CUDA runtime needs, or there is none.",
        telling="Driver too old (found version N), or CUDA error 35.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="nvidia-smi beside torch.version.cuda",
        refines="user-exception",
        wording=f"{WORDING}|{NONE_AT_ALL}",
    ),
    Signs(
        says=("has a driver that is too old for this torch", "have drivers that are too old for this torch"),
        checks=("drv.versions",),
        values=("driver.", "driver", "version.driver"),
    ),
)
