"""InfiniBand, RoCE or EFA cards cannot talk to each other as they are configured.

The wrong GID index on RoCE, cards of different fabrics in one list, a security group without EFA traffic, GPU memory that the card cannot register:
the rendezvous works, queue pairs are made, and the first transfer is not acknowledged.

It is recognised by completions with error 12 (vendor error 129) and other transport errors, and by calls of libibverbs that fail while NCCL sets up.
Steps that went well before them speak of a fault of the network instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import captured, lines, made_steps, seen_live, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, listed, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# NCCL's net_ib.cc and ibvwrap.cc, aws-ofi-nccl, UCX. ENOMEM of ibv_* is `memlock-limit`.
WORDING = (
    r"NET/IB ?: Got completion|Got completion from peer|ibv_modify_qp\w{0,4} failed|ibv_poll_cq|ibv_post_(?:send|recv)|incompatible devices|incompatible with the local"
    r"|different link_layer|async fatal event|NET/OFI [^\n]{0,100}(?:error|fail)|[Uu]nresponsive receiver|[Tt]ransport retry count|ibv_reg_\w{1,20} failed[^\n]{0,40}(?:Bad address|Invalid arg)"
)
SHOWS = ("ib-error", "ib-setup-failed", "ib-async-error", "ofi-error")
STATUS = {
    "4": "local protection error",
    "5": "work request flushed",
    "9": "remote invalid request",
    "10": "remote access error",
    "12": "transport retries exceeded",
    "13": "receiver not ready",
}


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, *SHOWS)
    if heard is None:
        return
    steps = made_steps(scene)
    setting_up = bool(lines(scene, "ib-setup-failed")) and not lines(scene, "ib-error")
    yield from weigh_told(scene, heard)
    if steps > 1 and not setting_up:
        yield weighing(-13, "network", f"The cards carried {steps} steps before", heard.fact)
    elif lines(scene, "ib-port-error", "link-down"):
        yield weighing(-13, "network", "A port went down, which no setting does", *lines(scene, "ib-port-error", "link-down")[:1])
    else:
        yield weighing(3, "network", "Nothing shows that a step was ever done", heard.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, *SHOWS)
    peers, status = captured(lines(scene, "ib-error"), "peer"), captured(lines(scene, "ib-error"), "status")
    if peers:
        means = f" (status {status[0]}, {STATUS[status[0]]})" if status and status[0] in STATUS else ""
        return sentence(f"The network cards cannot talk to {listed(peers[:3])}{means}")
    return sentence(f"The InfiniBand or RoCE cards cannot be used as configured{f': {short(heard.text, 140)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    efa = lines(scene, "ofi-error", "efa-in-use")
    hca = next((given.value for name in ("env.NCCL_IB_HCA",) if (given := scene.given(name)) is not None), "")
    return (
        fix(scene, "See whether it works over plain sockets", "NCCL_IB_DISABLE=1 torchrun …   (a test, and a slow bridge)"),
        fix(
            scene,
            "Use cards of one fabric, and on RoCE the right GID",
            f"export NCCL_IB_HCA=mlx5_0,mlx5_1{f'   (now {hca})' if hca else ''}",
            "show_gids; export NCCL_IB_GID_INDEX=3   (the index of RoCE v2 with the node's IPv4 address)",
        ),
        fix(
            scene,
            "Let the cards reach each other",
            "security group: all traffic from and to itself" if efa else "ib_write_bw -d mlx5_0 -x 3   and   ib_write_bw -d mlx5_0 -x 3 OTHER_NODE",
            "ibstat; ibdev2netdev; lsmod | grep -E 'nvidia_peermem|nv_peer_mem'",
            risk="needs-admin",
            who="admin",
        ),
    )


CAUSE = readied(
    Cause(
        id="ib-roce-misconfig",
        title="The RDMA cards cannot talk to each other as configured",
        means="InfiniBand, RoCE or EFA cards cannot talk to each other as configured.",
        telling="Completion errors (12, vendor error 129) at the first transfer, failing calls of libibverbs.",
        modes=("crash", "hang"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=seen_live,
        would_settle="ib_write_bw between the two nodes, with the GID index that NCCL uses",
        accounts_for=("user-exception", "rank-stuck", "native-crash"),
        wording=WORDING,
    ),
    Signs(
        says=("has a network card that is not ready", "have network cards that are not ready"),
        checks=("ib.state", "ib.gid"),
        values=("rdma.", "ib."),
        hows=("fabric",),
    ),
)
