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
from trainprobe.causes.signs import (
    UNHANDLED_CUDA,
    failed_at_start,
    filled,
    first_of,
    found_at_start,
    general_error,
)
from trainprobe.signatures.messages import message

WORDING = message("nvls-multicast")

CAUSE = Cause(
    id="nvls-multicast",
    title="NVLink SHARP cannot set up its multicast groups",
    modes=("crash", "hang"),
    weigh=first_of(
        failed_at_start(WORDING, "nvls"),
        general_error(UNHANDLED_CUDA, "a call of CUDA failed, as NVLink SHARP's do"),
    ),
    summary=filled(
        "NVLink SHARP (NVLS) cannot set up its multicast memory{quoted}",
        found_at_start(WORDING, "nvls"),
    ),
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
