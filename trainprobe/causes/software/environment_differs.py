"""A node's software or settings are unlike those of the other nodes.

Another version of torch, NCCL, the driver or the kernel, a variable that only one node's profile
sets, another file of NCCL's settings: an image that was not rebuilt, a home folder that is not
shared, a module that was loaded by hand. The job fails in its first collective, hangs, or computes
other numbers there.

It is recognised by what every node tells of itself: one differs from the rest in a value that all
must share. Two halves that differ are told, and nobody is in the wrong then. What has a name of its
own, such as a limit or an interface, is told under that name.

In a live job it is recognised by its ranks: they have loaded different versions of torch, made
groups of different backends, stand at lines that the file of another host has otherwise, or in
another copy of a file while they are in another call, or only some of them have
TORCH_DISTRIBUTED_DEBUG=DETAIL, with which torch makes one more group over all ranks, while all wait
for each other. Other differences may be right, and are only told.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.rank_differences import other_differences, weigh_differences
from trainprobe.causes.readiness_signs import GENERAL
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.model.ranks import and_list


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_differences(scene, other_differences(scene))


def _ranks(scene: Scene) -> tuple[int, ...]:
    found = other_differences(scene)
    return found[0].ranks if found else ()


def _summary(scene: Scene) -> str:
    first = other_differences(scene)[0]
    return f"{first.says}, and all ranks must have the same"


OF_RANKS = """
Start all ranks with the same {name}
    {step}
See what else differs
    trainprobe ready   (on the nodes of the job)
"""
OF_SOURCE = """
Bring the program to the same state on all nodes, and start again
    md5sum .../{file}; git -C ... log -1   (on each node; {host} is unlike the others)
    rsync -a --delete from one node, or start from a folder that all nodes share
"""


def _fixes(scene: Scene) -> Fixes:
    first = other_differences(scene)[0]
    if first.of_source:
        return fixes(OF_SOURCE, file=first.name.partition(":")[0], host=and_list(first.hosts))
    if "_" in first.name:
        unset = first.common.startswith("not ")
        step = (
            f"unset {first.name}   (on {first.hosts[0] if first.hosts else 'their host'})"
            if unset
            else f"export {first.name}={first.common}   (once, in the job script)"
        )
        return fixes(OF_RANKS, name=first.name, step=step)
    if first.name == "torch":
        step = f"pip install torch=={first.common}   (in the environment of these ranks)"
        return fixes(OF_RANKS, name="torch", step=step)
    step = "give init_process_group one backend, from the same setting on all nodes"
    return fixes(OF_RANKS, name="backend", step=step)


CAUSE = Cause(
    id=GENERAL,
    title="A node's software or settings are unlike the others'",
    would_settle=(
        "the same command on each node: python -c 'import torch; print(torch.__version__)', env,"
        " uname -r"
    ),
    modes=("check", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
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
