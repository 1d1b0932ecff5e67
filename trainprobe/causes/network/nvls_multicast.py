"""NVLink SHARP cannot set up its multicast groups.

On NVSwitch machines NCCL (from 2.17 on) and torch's symmetric memory reduce inside the switch. That needs a fabric manager that works, and free multicast
slots: otherwise CUDA refuses with error 401, "invalid argument" or even "out of memory", though the GPUs have room.

It is recognised by lines of transport/nvls.cc, by a multicast bind that failed, and by CUDA error 401 out of NCCL. "NVLS multicast support is available" is no sign.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene
from trainprobe.causes.told import told, weigh_general, weigh_told
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# NCCL's transport/nvls.cc; CUDA_ERROR_ILLEGAL_STATE (401); torch's CUDASymmetricMemory.
WORDING = r"transport/nvls\.cc|\(NVLS\) Multicast memory|cuMulticast(?:Create|Bind|Add|Get)|cannot be performed in the present state"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, "nvls")
    yield from weigh_told(scene, heard)
    if heard is None:
        yield from weigh_general(scene, r"unhandled cuda error|ncclUnhandledCudaError", "a call of CUDA failed, as NVLink SHARP's do")


def _summary(facts: Facts, group: SuspectGroup) -> str:
    heard = told(Scene(facts, group), WORDING, "nvls")
    return sentence(f"NVLink SHARP (NVLS) cannot set up its multicast memory{f': {short(heard.text, 140)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Go round it", "export NCCL_NVLS_ENABLE=0"),
        fix(
            scene,
            "See the state of the fabric",
            "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric   (State must be Completed, Status Success)",
            "modinfo nvidia | grep ^version; nv-fabricmanager --version   (the same version)",
        ),
        fix(
            scene,
            "Start the fabric manager again",
            "sudo systemctl restart nvidia-fabricmanager   (no job may run on the node)",
            risk="needs-admin",
            who="admin",
        ),
    )


CAUSE = Cause(
    id="nvls-multicast",
    title="NVLink SHARP cannot set up its multicast groups",
    means="NVLink SHARP cannot set up its multicast groups.",
    telling="Lines from nvls.cc, CUDA error 401, a failed multicast bind, sometimes in words of memory.",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="run once with NCCL_NVLS_ENABLE=0",
    accounts_for=("user-exception", "cuda-oom", "native-crash"),
    wording=WORDING,
)
