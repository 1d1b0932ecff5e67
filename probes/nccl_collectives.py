# /// trainprobe
# rung: 70
# question: Are NCCL's collectives correct over the GPUs, and how fast are they?
# scope: ranks
# needs: [torch, gpu, nccl]
# timeout_s: 90
# climbs: [ranks]
# after: [basic_cuda]
# means: The GPUs work alone but not together. The path between them (NVLink, PCIe, InfiniBand,
#   shared memory) or an NCCL setting is at fault.
# ///
"""Run gloo_control's sequence with NCCL, one GPU for each rank; a world of one works too.

Environment and flags: those of gloo_control.py, with --backend nccl and larger sizes as defaults.
"""

from __future__ import annotations

import os
import runpy
import sys

FOLDER = os.path.dirname(os.path.realpath(__file__))
DEFAULTS = [
    "--backend",
    "nccl",
    "--sizes",
    "1024,1048576,67108864",
    "--repeats",
    "10",
    "--timeout-s",
    "30",
]

if __name__ == "__main__":
    # Otherwise the watchdog ends a rank that waits too long by SIGABRT, and which operation it was
    # is lost.
    os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
    sys.argv[1:1] = DEFAULTS
    runpy.run_path(os.path.join(FOLDER, "gloo_control.py"), run_name="__main__")
