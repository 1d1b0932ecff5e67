"""InfiniBand, RoCE or EFA cards cannot talk to each other as they are configured.

The wrong GID index on RoCE, cards of different fabrics in one list, a security group without EFA
traffic, GPU memory that the card cannot register: the rendezvous works, queue pairs are made, and
the first transfer is not acknowledged.

It is recognised by completions with error 12 (vendor error 129) and other transport errors, and by
calls of libibverbs that fail while NCCL sets up. Steps that went well before them speak of a fault
of the network instead.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import Fixes, admin_fix, fix
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    captured,
    lines,
    made_steps,
    seen_live,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote_after
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

WORDING = message("ib-roce-misconfig")
SHOWS = ("ib-error", "ib-setup-failed", "ib-async-error", "ofi-error")
STATUS = {
    "4": "local protection error",
    "5": "work request flushed",
    "9": "remote invalid request",
    "10": "remote access error",
    "12": "transport retries exceeded",
    "13": "receiver not ready",
}


def _weigh(scene: Scene) -> Weighings:
    found = startup_failure(scene, WORDING, *SHOWS)
    if found is None:
        return
    steps = made_steps(scene)
    setting_up = bool(lines(scene, "ib-setup-failed")) and not lines(scene, "ib-error")
    yield from weigh_startup_failure(scene, found)
    if steps > 1 and not setting_up:
        yield weighing(-13, "network", f"The cards carried {steps} steps before", found.fact)
    elif lines(scene, "ib-port-error", "link-down"):
        says = "A port went down, which no setting does"
        yield weighing(-13, "network", says, *lines(scene, "ib-port-error", "link-down")[:1])
    else:
        yield weighing(3, "network", "Nothing shows that a step was ever done", found.fact)


def _summary(scene: Scene) -> str:
    found = startup_failure(scene, WORDING, *SHOWS)
    peers = captured(lines(scene, "ib-error"), "peer")
    status = captured(lines(scene, "ib-error"), "status")
    if peers:
        means = (
            f" (status {status[0]}, {STATUS[status[0]]})" if status and status[0] in STATUS else ""
        )
        return f"The network cards cannot talk to {and_list(peers[:3])}{means}"
    return f"The InfiniBand or RoCE cards cannot be used as configured{quote_after(found)}"


def _fixes(scene: Scene) -> Fixes:
    efa = lines(scene, "ofi-error", "efa-in-use")
    hca = next(
        (given.value for name in ("env.NCCL_IB_HCA",) if (given := scene.given(name)) is not None),
        "",
    )
    return (
        fix(
            "See whether it works over plain sockets",
            "NCCL_IB_DISABLE=1 torchrun …   (a test, and a slow bridge)",
        ),
        fix(
            "Use cards of one fabric, and on RoCE the right GID",
            f"export NCCL_IB_HCA=mlx5_0,mlx5_1{f'   (now {hca})' if hca else ''}",
            "show_gids; export NCCL_IB_GID_INDEX=3   (the index of RoCE v2 with the node's IPv4"
            " address)",
        ),
        admin_fix(
            "Let the cards reach each other",
            (
                "security group: all traffic from and to itself"
                if efa
                else "ib_write_bw -d mlx5_0 -x 3   and   ib_write_bw -d mlx5_0 -x 3 OTHER_NODE"
            ),
            "ibstat; ibdev2netdev; lsmod | grep -E 'nvidia_peermem|nv_peer_mem'",
        ),
    )


CAUSE = Cause(
    id="ib-roce-misconfig",
    title="The RDMA cards cannot talk to each other as configured",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=seen_live,
    would_settle="ib_write_bw between the two nodes, with the GID index that NCCL uses",
    accounts_for=("user-exception", "rank-stuck", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("has a network card that is not ready", "have network cards that are not ready"),
        checks=("ib.state", "ib.gid"),
        values=("rdma.", "ib."),
        hows=("fabric",),
    ),
)
