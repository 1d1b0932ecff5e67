"""The NVSwitch fabric is not set up.

On machines with NVSwitch a service, the fabric manager, connects the GPUs after boot. Without it,
or with one of another version than the driver, nvidia-smi shows healthy GPUs and every CUDA program
fails with error 802, "system not yet initialized".

It is recognised by that error, and by the service's own failure in the journal.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, Signs, nobody
from trainprobe.causes.phrases import admin_fix, fix, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import checked, first_to_fail, quote, statement, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("fabric-manager-down")
CHECK = ("drv.fm", "host.services")


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    if heard is None:
        return
    # CUDA has started, so the fabric is there: NVLink SHARP alone is not
    if "nvls" in heard.text.lower():
        yield quote(6, "NCCL says", heard)
        return
    yield from weigh_statement(scene, WORDING, log_points=26)
    yield from first_to_fail(scene)
    yield from checked(scene, *CHECK, corroborates=True)


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING)
    says = f" ({short(heard.match.group(0), 60)})" if heard is not None else ""
    return (
        f"CUDA cannot start on this node because the NVSwitch fabric is not set up{says}: the"
        " fabric manager does not run, or is not the driver's"
    )


CAUSE = Cause(
    id="fabric-manager-down",
    title="The NVSwitch fabric is not set up",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix(
            "See the fabric's state",
            "nvidia-smi -q | grep -A4 -i fabric   (State must be Completed)",
            "systemctl status nvidia-fabricmanager",
        ),
        admin_fix(
            "Start the fabric manager of the driver's version",
            "nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1  "
            " (nvidia-fabricmanager must be of this very version)",
            "sudo systemctl enable --now nvidia-fabricmanager",
            verify="python -c 'import torch; print(torch.cuda.is_available())'",
        ),
        fix("Meanwhile, elsewhere", "sbatch --exclude=<NODE> …"),
    ),
    ranks=nobody,
    would_settle=("systemctl status nvidia-fabricmanager, and nvidia-smi -q | grep -A4 -i fabric"),
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=WORDING,
    ready=Signs(
        says=("has no fabric manager that works", "have no fabric manager that works"),
        checks=("drv.fm",),
    ),
)
