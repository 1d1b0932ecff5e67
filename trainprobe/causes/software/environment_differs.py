"""A node's software or settings are unlike those of the other nodes.

Another version of torch, NCCL, the driver or the kernel, a variable that only one node's profile
sets, another file of NCCL's settings: an image that was not rebuilt, a home folder that is not
shared, a module that was loaded by hand. The job fails in its first collective, hangs, or computes
other numbers there.

It is recognised by what every node tells of itself: one differs from the rest in a value that all
must share. Two halves that differ are told, and nobody is in the wrong then. What has a name of its
own, such as a limit or an interface, is told under that name.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.readiness_signs import GENERAL

CAUSE = Cause(
    id=GENERAL,
    title="A node's software or settings are unlike the others'",
    would_settle=(
        "the same command on each node: python -c 'import torch; print(torch.__version__)', env,"
        " uname -r"
    ),
    modes=("check",),
    ranks=nobody,
    ready=ReadySigns(
        says=("is not like the other nodes", "are not like the other nodes"),
        checks=("py.same", "host.same", "env.same", "lim.same", "net.same", "ib.same", "drv.same"),
        values=(
            "version.",
            "python.",
            "torch.",
            "module.",
            "env.",
            "nccl.",
            "net.",
            "rdma.",
            "ib.",
            "driver.",
            "gpu.",
            "cuda.",
            "limit.",
            "kernel",
            "glibc",
            "thp",
            "memory.",
            "swap",
        ),
        admin=("bring its image and its packages to the state of the others",),
    ),
)
