"""The NVIDIA driver is older than the CUDA that torch was built for, or there is none.

Each CUDA release needs a least driver. On an older one the first CUDA call fails: "The NVIDIA
driver on your system is too old", or "CUDA driver version is insufficient" (error 35). A container
started without the GPU runtime has no driver at all, and says "Found no NVIDIA driver".

It is recognised by those words, by code that the driver cannot translate (error 222), and by the
environment check, which compares the two versions.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, admin_fix, fixes, short
from trainprobe.causes.scene import Scene
from trainprobe.causes.signs import all_of, check_or, failed_check, first_of, quoted, stated
from trainprobe.causes.statements import advice, quote_after, statement
from trainprobe.causes.version_conflicts import version_conflict
from trainprobe.signatures.messages import message

WORDING = message("driver-too-old")
NONE_AT_ALL = message("driver-too-old.none-at-all")
CHECK = "drv.versions"


NO_DRIVER = """
Let the container see the GPU
    docker run --gpus all …; resources.limits: nvidia.com/gpu in Kubernetes
    verify: nvidia-smi
Ask the scheduler for one
    sbatch --gres=gpu:N, and run nvidia-smi inside the job
    verify: nvidia-smi
"""
ANOTHER_BUILD = """
Without the administrator
    pip install a torch that was built for the CUDA that nvidia-smi shows
"""
NEWEST = "nvidia-smi | head -4   (shows the newest CUDA that the driver knows)"


def _fixes(scene: Scene) -> Fixes:
    if statement(scene, WORDING) is None and statement(scene, NONE_AT_ALL) is not None:
        return fixes(NO_DRIVER)
    steps = advice(scene, CHECK) or (NEWEST,)
    update = admin_fix("Update the driver, or take an older build", *steps, verify="nvidia-smi")
    return (update, *fixes(ANOTHER_BUILD))


def _summary(scene: Scene) -> str:
    found = statement(scene, WORDING) or statement(scene, NONE_AT_ALL)
    pair = version_conflict(scene, WORDING)
    if pair is not None:
        return f"{pair.says}{quote_after(found)}"
    return short(found.text) if found else "The NVIDIA driver is older than torch needs"


CAUSE = Cause(
    id="driver-too-old",
    title="The NVIDIA driver is too old, or missing",
    weigh=all_of(
        first_of(
            stated(WORDING, log_points=26),
            quoted(13, "There is no driver", NONE_AT_ALL),
            # a container's CUDA that is newer than the driver, or a half-updated driver
            quoted(3, "CUDA is newer than the driver", message("driver-too-old.compatibility")),
        ),
        failed_check(CHECK, beside=WORDING),
    ),
    summary=check_or(CHECK, otherwise=_summary),
    fixes=_fixes,
    ranks=nobody,
    would_settle="nvidia-smi; python -c 'import torch; print(torch.version.cuda)'",
    refines="user-exception",
    accounts_for=("import-failure",),
    wording=f"{WORDING}|{NONE_AT_ALL}",
    ready=ReadySigns(
        says=("has a driver too old for this torch", "have drivers too old for this torch"),
        checks=("drv.versions",),
        values=("driver.", "driver", "version.driver"),
    ),
)
