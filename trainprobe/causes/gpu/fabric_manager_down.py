"""The NVSwitch fabric is not set up.

On machines with NVSwitch a service, the fabric manager, connects the GPUs after boot. Without it,
or with one of another version than the driver, nvidia-smi shows healthy GPUs and every CUDA program
fails with error 802, "system not yet initialized".

It is recognised by that error, and by the service's own failure in the journal.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.signs import confirmed, failed_check, first_of, stated
from trainprobe.causes.statements import quote, statement
from trainprobe.signatures.messages import message

WORDING = message("fabric-manager-down")


def _nvls_alone(scene: Scene) -> Weighings:
    """CUDA has started, so the fabric is set up; NVLink SHARP alone is not."""
    found = statement(scene, WORDING)
    if found is not None and "nvls" in found.text.lower():
        yield quote(6, "NCCL says", found)


def _summary(scene: Scene) -> str:
    found = statement(scene, WORDING)
    says = f" ({short(found.match.group(0), 60)})" if found is not None else ""
    return (
        f"CUDA cannot start on this node because the NVSwitch fabric is not set up{says}: the"
        " fabric manager does not run, or its version is not the driver's"
    )


CAUSE = Cause(
    id="fabric-manager-down",
    title="The NVSwitch fabric is not set up",
    weigh=first_of(
        _nvls_alone,
        confirmed(stated(WORDING, log_points=26), failed_check("drv.fm", "host.services")),
    ),
    summary=_summary,
    fixes=fixes("""
        See the fabric's state
            nvidia-smi -q | grep -A4 -i fabric   (State must be Completed)
            systemctl status nvidia-fabricmanager
        [admin] Start the fabric manager of the driver's version
            nvidia-smi --query-gpu=driver_version --format=csv,noheader | head
                -1   (nvidia-fabricmanager must be of this very version)
            sudo systemctl enable --now nvidia-fabricmanager
            verify: python -c 'import torch; print(torch.cuda.is_available())'
        Meanwhile, elsewhere
            sbatch --exclude=<NODE> …
    """),
    ranks=nobody,
    would_settle="systemctl status nvidia-fabricmanager, and nvidia-smi -q | grep -A4 -i fabric",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has no fabric manager that works", "have no fabric manager that works"),
        checks=("drv.fm",),
    ),
)
