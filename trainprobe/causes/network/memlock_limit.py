"""The limit of locked memory is too low for RDMA.

InfiniBand, RoCE and EFA pin the memory that they send from. Where `ulimit -l` is 64 KiB or 8 MiB, as it is in containers and in daemons started by
hand, registering a buffer or making a queue fails with "Cannot allocate memory" while memory is free.

It is recognised by ENOMEM of ibv_reg_mr and ibv_create_cq, and by the limit itself where it was told. An unlimited one speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import captured, lines, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import GIB, fix, sentence, short, size
from trainprobe.facts import Facts, Given
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# NCCL's ibvwrap.cc (before 2.21 without the reason), UCX, libibverbs.
WORDING = r"ibv_reg_\w{1,20}(?:\([^)\n]{0,60}\))? failed[^\n]{0,120}Cannot allocate memory|ibv_create_(?:cq|qp|srq)\S{0,40} failed|set max locked memory|RLIMIT_MEMLOCK is \d"
ENOUGH = GIB  # NCCL registers some MiB per channel and peer; below this large jobs fail


def _limit(scene: Scene) -> Given | None:
    return scene.given("limit.memlock_bytes")


def _bytes(scene: Scene) -> float | None:
    """The limit in bytes, infinite where it is unlimited, None where nobody told."""
    given = _limit(scene)
    if given is None:
        told_by_library = captured(lines(scene, "memlock"), "bytes")
        return float(told_by_library[0]) if told_by_library else None
    return float("inf") if given.value.startswith("unlim") or given.value == "-1" else given.number


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, "memlock")
    if heard is None:
        return
    yield from weigh_told(scene, heard)
    limit = _bytes(scene)
    if limit is not None and limit < ENOUGH:
        yield weighing(10, "environment-and-limits", f"Locked memory is limited to {size(limit)}", _limit(scene) or heard.fact)
    elif limit is not None:
        yield weighing(-13, "environment-and-limits", "Locked memory is not limited to less than RDMA needs", _limit(scene) or heard.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, limit = told(scene, WORDING, "memlock"), _bytes(scene)
    now = f" (ulimit -l is {size(limit)})" if limit is not None and limit < ENOUGH else ""
    return sentence(f"The network card may not lock the memory that it needs{now}{f': {short(heard.text, 120)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "See the limit where the ranks run",
            "srun bash -c 'ulimit -l'   or   grep locked /proc/<PID>/limits",
            verify="ulimit -l   (must say unlimited)",
        ),
        fix(scene, "In a container", "docker run --ulimit memlock=-1:-1 --cap-add=IPC_LOCK …", "Kubernetes: securityContext.capabilities.add: [IPC_LOCK]"),
        fix(
            scene,
            "On the host and in its daemons",
            'printf "* soft memlock unlimited\\n* hard memlock unlimited\\n" | sudo tee /etc/security/limits.d/rdma.conf',
            "systemctl edit slurmd   (LimitMEMLOCK=infinity; then restart it and log in again)",
            risk="needs-admin",
            who="admin",
            verify="ulimit -l   (must say unlimited)",
        ),
    )


CAUSE = readied(
    Cause(
        id="memlock-limit",
        title="The limit of locked memory is too low for RDMA",
        means="The limit of locked memory is too low for RDMA.",
        telling="Registering memory or making a queue fails with out of memory while ulimit -l is low.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="ulimit -l inside a rank",
        refines="ib-roce-misconfig",
        accounts_for=("user-exception", "address-space-limit", "host-oom-killed", "native-crash"),
        wording=WORDING,
    ),
    Signs(says=("allows too little locked memory", "allow too little locked memory"), checks=("lim.memlock",), values=("limit.memlock", "limit.memlock_bytes")),
)
