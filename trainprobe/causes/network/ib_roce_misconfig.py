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
from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import confirmed, failed_at_start
from trainprobe.causes.startup_failures import (
    captured,
    lines,
    made_steps,
    seen_live,
    startup_failure,
    was_flushed,
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
FIXES = """
See whether it works over plain sockets
    NCCL_IB_DISABLE=1 torchrun …   (a test, and a slow bridge)
Use cards of one fabric, and on RoCE the right GID
    export NCCL_IB_HCA=mlx5_0,mlx5_1{now}
    show_gids; export NCCL_IB_GID_INDEX=3   (the index of RoCE v2 with the node's IPv4 address)
[admin] Let the cards reach each other
    {reach}
    ibstat; ibdev2netdev; lsmod | grep -E 'nvidia_peermem|nv_peer_mem'
"""


def _before(scene: Scene) -> Weighings:
    """Steps that went well, or a port that went down, speak of the network instead."""
    down, steps = lines(scene, "ib-port-error", "link-down"), made_steps(scene)
    setting_up = lines(scene, "ib-setup-failed") and not lines(scene, "ib-error")
    found = startup_failure(scene, WORDING, *SHOWS)
    fact = found.fact if found is not None else None
    if flushed := [one for one in lines(scene, "ib-error") if was_flushed(one)]:
        says = "What was still to be sent was flushed: the other end had gone before"
        yield weighing(-26, "network", says, flushed[0])
    elif steps > 1 and not setting_up:
        yield weighing(-13, "network", f"The cards carried {steps} steps before", fact)
    elif down:
        yield weighing(-13, "network", "A port went down, which no setting does", down[0])
    else:
        yield weighing(3, "network", "Nothing shows that a step was ever done", fact)


def _summary(scene: Scene) -> str:
    errors = lines(scene, "ib-error")
    peers, status = captured(errors, "peer"), captured(errors, "status")[:1]
    if peers:
        means = "".join(f" (status {code}, {STATUS[code]})" for code in status if code in STATUS)
        return f"The network cards cannot talk to {and_list(peers[:3])}{means}"
    found = startup_failure(scene, WORDING, *SHOWS)
    return f"The InfiniBand or RoCE cards cannot be used as configured{quote_after(found)}"


def _fixes(scene: Scene) -> Fixes:
    hca = scene.given("env.NCCL_IB_HCA")
    reach = "ib_write_bw -d mlx5_0 -x 3   and   ib_write_bw -d mlx5_0 -x 3 OTHER_NODE"
    if lines(scene, "ofi-error", "efa-in-use"):
        reach = "security group: all traffic from and to itself"
    return fixes(FIXES, now=f"   (now {hca.value})" if hca else "", reach=reach)


CAUSE = Cause(
    id="ib-roce-misconfig",
    title="The RDMA cards cannot talk to each other as configured",
    modes=("crash", "hang"),
    weigh=confirmed(failed_at_start(WORDING, *SHOWS), _before),
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
