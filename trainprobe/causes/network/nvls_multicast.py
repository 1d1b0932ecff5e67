"""NVLink SHARP cannot set up its multicast groups.

On NVSwitch machines NCCL (from 2.17 on) and torch's symmetric memory reduce inside the switch. That
needs a fabric manager that works, and free multicast slots: otherwise CUDA refuses with error 401,
"invalid argument" or even "out of memory", though the GPUs have room.

It is recognised by lines of transport/nvls.cc, by a multicast bind that failed, and by CUDA error
401 out of NCCL. "NVLS multicast support is available" is no sign.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.startup_failures import startup_failure, weigh_general, weigh_startup_failure
from trainprobe.causes.statements import quote_after
from trainprobe.signatures.messages import message

WORDING = message("nvls-multicast")


def _weigh(scene: Scene) -> Weighings:
    heard = startup_failure(scene, WORDING, "nvls")
    yield from weigh_startup_failure(scene, heard)
    if heard is None:
        yield from weigh_general(
            scene,
            r"unhandled cuda error|ncclUnhandledCudaError",
            "a call of CUDA failed, as NVLink SHARP's do",
        )


def _summary(scene: Scene) -> str:
    heard = startup_failure(scene, WORDING, "nvls")
    return f"NVLink SHARP (NVLS) cannot set up its multicast memory{quote_after(heard)}"


CAUSE = Cause(
    id="nvls-multicast",
    title="NVLink SHARP cannot set up its multicast groups",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Go round it
            export NCCL_NVLS_ENABLE=0
        See the state of the fabric
            systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric   (State must be
                Completed, Status Success)
            modinfo nvidia | grep ^version; nv-fabricmanager --version   (the same version)
        [admin] Start the fabric manager again
            sudo systemctl restart nvidia-fabricmanager   (no job may run on the node)
    """),
    ranks=nobody,
    would_settle="run once with NCCL_NVLS_ENABLE=0",
    accounts_for=("user-exception", "cuda-oom", "native-crash"),
    wording=WORDING,
)
