"""Ranks use or advertise an interface over which the others cannot reach them.

NCCL and gloo pick an interface by themselves: loopback because /etc/hosts names 127.0.1.1, docker0
because it sorts first, one without an address. Or NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME name one
that a node does not have.

It is recognised by NCCL's and gloo's words about interfaces, by lo or docker0 in NCCL's list, by
ranks of a live job that name an interface which their host does not have, and by peers at
127.0.0.1, 172.17.0.1 or a link-local address that refuse.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.rank_differences import IFNAMES, named_differences, weigh_differences
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import UNHANDLED_SYSTEM
from trainprobe.causes.startup_failures import (
    captured,
    failed_of_something_else,
    final_exceptions,
    lines,
    made_steps,
    of_one_host,
    of_several_hosts,
    only_generally,
    startup_failure,
    weigh_general,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote, quote_after, text_of
from trainprobe.facts import LogEvent
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

WORDING = message("wrong-network-interface")
SURE = ("interface-missing", "loopback-peer", "family-mismatch", "virtual-peer", "address-not-own")
CUT = (
    "peer-refused",
    "peer-unanswered",
    "gloo-mesh-failed",
    "connection-closed",
    "nccl-system-error",
    "rendezvous-timeout",
    "no-route",
)


def _odd(scene: Scene) -> tuple[LogEvent, ...]:
    return lines(scene, "wrong-interface")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_differences(scene, named_differences(scene, IFNAMES))
    found = startup_failure(scene, WORDING, *SURE)
    if found is None:
        yield from weigh_general(
            scene,
            UNHANDLED_SYSTEM,
            "a system call failed, as on an interface that leads nowhere",
        )
    cut, odd = lines(scene, *CUT), _odd(scene)
    peers = captured(lines(scene, "loopback-peer"), "address")
    if (
        found is not None
        and peers
        and set(peers) == {"127.0.0.1"}
        and of_one_host(scene)
        and not lines(scene, *SURE[:1], *SURE[2:])
    ):
        yield quote(3, "A peer was sought at 127.0.0.1, which is right on one host", found)
    elif found is not None:
        yield from weigh_startup_failure(
            scene, found, sign=26 if cut or scene.origin is not None else 13, at_start=True
        )
    elif odd and not failed_of_something_else(scene) and made_steps(scene) < 2:
        fatal = any(event.fatal for event in odd)
        alone = scene.given("nodes") is not None and not of_several_hosts(scene)
        # on one host it is as good as any
        loopback = all(
            event.captured.get("interface") == "lo" for event in odd
        ) and not of_several_hosts(scene)
        points = 26 if fatal else 3 if alone else 26 if cut else 6 if loopback else 13
        yield quote(points, "An interface that leads nowhere is used", odd[0])
    if odd and cut and found is not None:
        yield weighing(6, "network", f"Connections fail over it: {short(cut[0].line)}", cut[0])
    bridges = lines(scene, "bridges-used")
    if (
        found is None
        and not odd
        and bridges
        and only_generally(scene, UNHANDLED_SYSTEM, beside="bridges-used")
    ):
        yield quote(
            13, "NCCL also uses a bridge of containers, which no other host reaches", bridges[0]
        )
    mesh = lines(scene, "gloo-mesh-failed")
    if (
        found is None
        and not odd
        and mesh
        and (final_exceptions(scene) or not failed_of_something_else(scene))
        and not lines(scene, "peer-refused", "peer-unanswered")
    ):
        yield quote(13, "gloo could not connect the ranks at the addresses that they gave", mesh[0])
    networks = {
        address.rsplit(".", 2)[0]
        for address in captured(lines(scene, "nccl-interface"), "address")
        if address.count(".") == 3
    }
    if len(networks) > 1 and cut:
        says = (
            "The ranks listen in different networks:"
            f" {and_list(sorted(f'{net}.x' for net in networks))}"
        )
        yield weighing(10, "network", says, *lines(scene, "nccl-interface")[:2])


def _which(scene: Scene) -> str:
    found = startup_failure(scene, WORDING, *SURE)
    named = captured((*lines(scene, *SURE), *_odd(scene)), "interface") or captured(
        (*lines(scene, *SURE), *_odd(scene)), "address"
    )
    return named[0] if named else (found.captured.get("interface", "") if found is not None else "")


def _summary(scene: Scene) -> str:
    if unlike := named_differences(scene, IFNAMES):
        return unlike[0].says
    which, found = _which(scene), startup_failure(scene, WORDING, *SURE)
    if lines(scene, "interface-missing") and which:
        return f"The interface {which}, which the job names, is not there or has no address"
    if which:
        return f"The ranks give each other {which}, over which other hosts cannot reach them"
    return (
        f"The ranks use a network interface that the others cannot reach{quote_after(found, 120)}"
    )


FIXES = """
See which interface leads to the other nodes
    ip -br addr; ip route get ADDRESS_OF_ANOTHER_NODE   (on each node)
Name it
    export NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0{now}
    {leave_out}
[admin] Let the node's own name be its address
    getent hosts $(hostname)   (must not be 127.0.0.1 or 127.0.1.1)
"""


# only NCCL understands a name that begins with ^
LEAVE_OUT = "export NCCL_SOCKET_IFNAME=^lo,docker   (leave out what leads nowhere)"


def _of_nccl(scene: Scene) -> bool:
    """Whether NCCL is what fails, or nothing tells that Gloo does."""
    said = " ".join(event.line for event in (*lines(scene, *SURE, *CUT), *_odd(scene)))
    said += " ".join(text_of(one) for one in final_exceptions(scene))
    return "nccl" in said.lower() or "gloo" not in said.lower()


def _fixes(scene: Scene) -> Fixes:
    gloo = not _of_nccl(scene)
    own = next(
        (
            given.value
            for name in ("env.NCCL_SOCKET_IFNAME", "env.GLOO_SOCKET_IFNAME")
            if (given := scene.given(name)) is not None
        ),
        "",
    )
    now = f"   (now {own})" if own else ""
    return fixes(FIXES, now=now, leave_out="" if gloo else LEAVE_OUT)


CAUSE = Cause(
    id="wrong-network-interface",
    title="Ranks use an interface that the others cannot reach",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ip -br addr on each node, and NCCL_DEBUG=INFO's line `Bootstrap : Using`",
    refines="firewall-or-route",
    accounts_for=("user-exception", "rendezvous-incomplete", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("takes an unreachable interface", "take an unreachable interface"),
        checks=("net.ifname", "net.if"),
        values=(
            "net.interface",
            "net.subnet",
            "env.GLOO_SOCKET_IFNAME",
            "env.NCCL_SOCKET_IFNAME",
            "env.TP_SOCKET_IFNAME",
        ),
        hows=("gloo-only",),
    ),
)
