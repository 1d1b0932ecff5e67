"""The NVSwitch fabric is not set up.

On machines with NVSwitch a service, the fabric manager, connects the GPUs after boot. Without it, or with one of another version than the driver, nvidia-smi
shows healthy GPUs and every CUDA program fails with error 802, "system not yet initialized".

It is recognised by that error, and by the service's own failure in the journal.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# CUDA's cudaErrorSystemNotReady (802); nvidia-fabricmanager in the journal.
WORDING = (
    r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|nvidia-fabricmanager\.service: (?:Failed|Main process exited)"
    r"|[Ff]ailed to start (?:NVIDIA )?(?:nvidia-)?[Ff]abric ?[Mm]anager|[Ff]abric ?[Mm]anager[^\n]{0,80}(?:not running|NV_WARN_NOTHING_TO_DO|does not match|version mismatch)"
)
CHECK = ("drv.fm", "host.services")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    if heard is None:
        return
    if "nvls" in heard.text.lower():  # CUDA has started, so the fabric is there: NVLink SHARP alone is not
        yield weighing(6, "suspects-log", f"NCCL says: {short(heard.text, 120)}", heard.fact)
        return
    yield from spoken(scene, WORDING, log_points=26)
    yield from first_to_fail(scene)
    yield from checked(scene, *CHECK, corroborates=True)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    heard = said(Scene(facts, group), WORDING)
    says = f" ({short(heard.match.group(0), 60)})" if heard is not None else ""
    return sentence(f"CUDA cannot start on this node because the NVSwitch fabric is not set up{says}: the fabric manager does not run, or is not the driver's")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "See the fabric's state", "nvidia-smi -q | grep -A4 -i fabric   (State must be Completed)", "systemctl status nvidia-fabricmanager"),
        fix(
            scene,
            "Start the fabric manager of the driver's version",
            "nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1   (nvidia-fabricmanager must be of this very version)",
            "sudo systemctl enable --now nvidia-fabricmanager",
            risk="needs-admin",
            who="admin",
            verify="python -c 'import torch; print(torch.cuda.is_available())'",
        ),
        fix(scene, "Meanwhile, elsewhere", "sbatch --exclude=<NODE> …"),
    )


CAUSE = readied(
    Cause(
        id="fabric-manager-down",
        title="The NVSwitch fabric is not set up",
        means="The NVSwitch fabric is not set up.",
        telling="CUDA error 802 while nvidia-smi works.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="systemctl status nvidia-fabricmanager, and nvidia-smi -q | grep -A4 -i fabric",
        refines="user-exception",
        accounts_for=("native-crash",),
        wording=WORDING,
    ),
    Signs(says=("has no fabric manager that works", "have no fabric manager that works"), checks=("drv.fm",)),
)
