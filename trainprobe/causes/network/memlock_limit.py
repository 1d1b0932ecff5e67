"""The limit of locked memory is too low for RDMA.

InfiniBand, RoCE and EFA pin the memory that they send from. Where `ulimit -l` is 64 KiB or 8 MiB,
as it is in containers and in daemons started by hand, registering a buffer or making a queue fails
with "Cannot allocate memory" while memory is free.

It is recognised by ENOMEM of ibv_reg_mr and ibv_create_cq, and by the limit itself where it was
told. An unlimited one speaks against it.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import GIB, fixes, size
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    captured,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote_after
from trainprobe.signatures.messages import message

WORDING = message("memlock-limit")
ENOUGH = GIB  # NCCL registers some MiB per channel and peer; below this large jobs fail


def _limit(scene: Scene) -> float | None:
    """The limit in bytes, infinite if it is unlimited, None if unknown."""
    given = scene.given("limit.memlock_bytes")
    if given is None:
        printed = captured(lines(scene, "memlock"), "bytes")
        return float(printed[0]) if printed else None
    return float("inf") if given.value.startswith("unlim") or given.value == "-1" else given.number


def _weigh(scene: Scene) -> Weighings:
    found, limit = startup_failure(scene, WORDING, "memlock"), _limit(scene)
    yield from weigh_startup_failure(scene, found)
    if found is None or limit is None:
        return
    fact = scene.given("limit.memlock_bytes") or found.fact
    if limit < ENOUGH:
        says = f"Locked memory is limited to {size(limit)}"
        yield weighing(10, "environment-and-limits", says, fact)
    else:
        says = "Locked memory is not limited to less than RDMA needs"
        yield weighing(-13, "environment-and-limits", says, fact)


def _summary(scene: Scene) -> str:
    found, limit = startup_failure(scene, WORDING, "memlock"), _limit(scene)
    now = f" (ulimit -l is {size(limit)})" if limit is not None and limit < ENOUGH else ""
    return f"The network card may not lock the memory that it needs{now}{quote_after(found, 120)}"


CAUSE = Cause(
    id="memlock-limit",
    title="The limit of locked memory is too low for RDMA",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        See the limit where the ranks run
            srun bash -c 'ulimit -l'   or   grep locked /proc/<PID>/limits
            verify: ulimit -l   (must say unlimited)
        In a container
            docker run --ulimit memlock=-1:-1 --cap-add=IPC_LOCK …
            Kubernetes: securityContext.capabilities.add: [IPC_LOCK]
        [admin] On the host and in its daemons
            printf "* soft memlock unlimited\\n* hard memlock unlimited\\n" | sudo tee
                /etc/security/limits.d/rdma.conf
            systemctl edit slurmd   (LimitMEMLOCK=infinity; then restart it and log in again)
            verify: ulimit -l   (must say unlimited)
    """),
    ranks=nobody,
    would_settle="ulimit -l inside a rank",
    refines="ib-roce-misconfig",
    accounts_for=("user-exception", "address-space-limit", "host-oom-killed", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("allows too little locked memory", "allow too little locked memory"),
        checks=("lim.memlock",),
        values=("limit.memlock", "limit.memlock_bytes"),
    ),
)
