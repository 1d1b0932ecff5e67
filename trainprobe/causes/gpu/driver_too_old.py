"""The NVIDIA driver is older than the CUDA that torch was built for, or there is none.

Each CUDA release needs a least driver. On an older one the first CUDA call fails: "The NVIDIA
driver on your system is too old", or "CUDA driver version is insufficient" (error 35). A container
started without the GPU runtime has no driver at all, and says "Found no NVIDIA driver".

It is recognised by those words, by code that the driver cannot translate (error 222), and by the
environment check, which compares the two versions.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, Signs, nobody
from trainprobe.causes.phrases import Fixes, admin_fix, fix, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import (
    advice,
    checked,
    first_to_fail,
    quote,
    statement,
    weigh_statement,
)
from trainprobe.signatures.messages import message

WORDING = message("driver-too-old")
NONE_AT_ALL = message("driver-too-old.none-at-all")
COMPATIBILITY = message("driver-too-old.compatibility")
CHECK = "drv.versions"


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    none = statement(scene, NONE_AT_ALL)
    compatibility = statement(scene, COMPATIBILITY)
    yield from weigh_statement(scene, WORDING, log_points=26)
    if heard is not None:
        yield from first_to_fail(scene)
    elif none is not None:
        yield quote(13, "There is no driver", none)
    elif compatibility is not None:
        # a CUDA of the container that is newer than the driver, or a driver updated in part
        yield quote(3, "CUDA is newer than the driver", compatibility)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _summary(scene: Scene) -> str:
    check = next(iter(scene.checks(CHECK)), None)
    heard = statement(scene, WORDING) or statement(scene, NONE_AT_ALL)
    if check is not None:
        return check.says
    if heard is not None:
        return short(heard.text, 160)
    return "The NVIDIA driver is older than torch needs"


def _fixes(scene: Scene) -> Fixes:
    more = advice(scene, CHECK)
    if statement(scene, WORDING) is None and statement(scene, NONE_AT_ALL) is not None:
        return (
            fix(
                "Let the container see the GPU",
                "docker run --gpus all …; resources.limits: nvidia.com/gpu in Kubernetes",
                verify="nvidia-smi",
            ),
            fix(
                "Ask the scheduler for one",
                "sbatch --gres=gpu:N, and run nvidia-smi inside the job",
                verify="nvidia-smi",
            ),
        )
    return (
        admin_fix(
            "Update the driver, or take an older build",
            *(more or ("nvidia-smi | head -4   (shows the newest CUDA that the driver knows)",)),
            verify="nvidia-smi",
        ),
        fix(
            "Without the administrator",
            "pip install a torch that was built for the CUDA that nvidia-smi shows",
        ),
    )


CAUSE = Cause(
    id="driver-too-old",
    title="The NVIDIA driver is too old, or missing",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="nvidia-smi beside torch.version.cuda",
    refines="user-exception",
    wording=f"{WORDING}|{NONE_AT_ALL}",
    ready=Signs(
        says=(
            "has a driver that is too old for this torch",
            "have drivers that are too old for this torch",
        ),
        checks=("drv.versions",),
        values=("driver.", "driver", "version.driver"),
    ),
)
