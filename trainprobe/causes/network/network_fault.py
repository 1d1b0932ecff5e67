"""A link, port or switch fails while the job runs.

All ranks have come to the same collective and none gets out of it: nobody is to blame among them. A
port that went down, a cable with errors, a switch that drops packets keeps the data from passing.

It is recognised by ranks that are all inside one collective together with a port that is down or
counts errors between two looks, or with segments that are sent again and again without an answer.
In logs: transport errors, or ports that went down, after steps that went well. Ports that carry
data without errors rule it out; a rank outside the collective does so too.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.diverging_calls import camps, places
from trainprobe.causes.phrases import Fixes, admin_fix, fix, ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    captured,
    failed_of_something_else,
    lines,
    made_steps,
    was_flushed,
)
from trainprobe.facts import Connection, PortCounters
from trainprobe.model.ranks import and_list

UP = frozenset({"ACTIVE", "up", "unknown", ""})
DOWN = ("ib-port-error", "link-down")
BROKEN = ("ib-device-fatal", "nvlink-error")  # the card or the link itself has given up
# what ranks say whose link is gone
CUT = ("connection-closed", "collective-timeout", "nccl-aborted")
GIVEN_UP = "connection-lost"
LOST = (GIVEN_UP, "ib-error", "ofi-error", "peer-unanswered", "ib-async-error")
FEW = 3  # segments sent again: one or two are lost on any network


def _ports(scene: Scene) -> tuple[PortCounters, ...]:
    return tuple(port for port in scene.of(PortCounters) if port.kind != "tcp")


def _odd(scene: Scene) -> tuple[PortCounters, ...]:
    """Ports whose errors rise, or InfiniBand ports that are down while others are up."""
    active = any(port.state == "ACTIVE" for port in _ports(scene))
    return tuple(
        port
        for port in _ports(scene)
        if port.errors or (port.state not in UP and port.kind in ("infiniband", "efa") and active)
    )


def _unanswered(scene: Scene) -> tuple[Connection, ...]:
    """Connections of the ranks whose data nobody acknowledges."""
    found = [
        one
        for one in scene.of(Connection)
        if one.kind == "tcp" and one.state in ("ESTAB", "CLOSE_WAIT")
    ]
    return tuple(one for one in found if (one.retransmits or 0) >= FEW and (one.tx_queue or 0) > 0)


def _weigh(scene: Scene) -> Weighings:
    yield from _from_log(scene)
    found = places(scene)
    together = len(found) == len(scene.world) and len(camps(found)) == 1
    odd, unanswered = _odd(scene), _unanswered(scene)
    if odd:
        what = (
            "counts"
            f" {and_list([f'{name} +{rise}' for name, rise in sorted(odd[0].errors.items())][:3])}"
            if odd[0].errors
            else f"is {odd[0].state}"
        )
        yield weighing(13, "network", f"Port {odd[0].port} {what}", *odd)
    elif unanswered:
        first = unanswered[0]
        says = (
            f"Pid {first.pid} has sent {first.tx_queue} bytes to {first.remote} {first.retransmits}"
            " times over, and nobody acknowledges them"
        )
        yield weighing(13, "network", says, *unanswered)
    if not (odd or unanswered):
        moving = [port for port in _ports(scene) if port.sent_bytes and port.received_bytes]
        if moving and _ports(scene):
            yield weighing(
                -6, "network", f"Port {moving[0].port} carries data without errors", *moving
            )
        return
    if together:
        place = next(iter(found.values()))
        says = f"All {len(found)} ranks are in the same call, {place}, and none gets out"
        yield weighing(10, "other-stacks", says, *(one.fact for one in found.values()))
    elif len(found) < len(scene.world):
        absent = [rank for rank in scene.world if rank not in found]
        says = f"{ranks_say(absent)} did not come to that collective at all"
        yield weighing(-10, "other-stacks", says, *(one.fact for one in found.values()))


def _from_log(scene: Scene) -> Weighings:
    """A first transfer that fails speaks of the configuration, a late one of the network."""
    for line in lines(scene, *BROKEN)[:1]:
        yield weighing(26, "network", f"A card or a link gave up: {short(line.line)}", line)
    down, errors, steps = lines(scene, *DOWN), lines(scene, *LOST), made_steps(scene)
    errors = tuple(one for one in errors if not was_flushed(one))
    if failed_of_something_else(scene):
        return
    if down and (
        errors or scene.group.mode == "hang" or scene.origin is not None or lines(scene, *CUT)
    ):
        yield weighing(13, "network", f"A port went down: {short(down[0].line)}", down[0])
    if given_up := lines(scene, GIVEN_UP):
        says = f"The kernel gave up a connection that was open: {short(given_up[0].line)}"
        yield weighing(26, "suspects-log", says, *given_up[:1])
    elif errors and (steps > 1 or down):
        says = (
            f"The transport failed{f' after {steps} steps' if steps else ''}:"
            f" {short(errors[0].line)}"
        )
        yield weighing(26 if errors[0].event == "ib-error" else 13, "suspects-log", says, errors[0])


def _where(scene: Scene) -> str:
    odd, unanswered = _odd(scene), _unanswered(scene)
    peers = captured(lines(scene, *LOST), "peer")
    if peers and not odd and not unanswered:
        return f"the way to {and_list(peers[:3])}"
    if odd:
        return f"port {odd[0].port} on {next(iter(scene.group.hosts), 'this host')}"
    if unanswered:
        return f"the way from {unanswered[0].local} to {unanswered[0].remote}"
    return "the network"


def _summary(scene: Scene) -> str:
    down = lines(scene, *BROKEN, *DOWN)
    if down:
        return (
            f"The network failed while the job ran{f' on {down[0].host}' if down[0].host else ''}:"
            f" {short(down[0].line, 120)}"
        )
    if lines(scene, *LOST):
        return f"The network failed while the job ran: {_where(scene)} lost its data"
    return f"The ranks are all inside one collective, and {_where(scene)} does not carry its data"


def _fixes(scene: Scene) -> Fixes:
    unanswered = _unanswered(scene)
    host = unanswered[0].remote.rpartition(":")[0] if unanswered else "HOST"
    return (
        fix(
            "See whether the other end answers",
            f"ping -c 3 {host}",
            "ss -tino | grep -B1 retrans; ip -s link",
            "ibstat; perfquery -x",
        ),
        admin_fix(
            "Take the node or cable out of service",
            "scontrol update nodename=<NODE> state=drain reason='network'",
        ),
        fix("As a bridge: longer retries", "export NCCL_IB_TIMEOUT=23 NCCL_IB_RETRY_CNT=7"),
    )


CAUSE = Cause(
    id="network-fault",
    title="The network does not carry a collective's data",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "ss -tino; ip -s link   (twice: do retransmits or errors of the ranks' connections grow?)"
    ),
    ready=ReadySigns(
        says=("has a network that does not carry the data", "do not carry each other's data"),
        checks=("net.errors", "ib.flap"),
        hows=("failed", "wrong-result", "large-packets", "scale"),
        admin=(
            (
                "ip -s link; ethtool -S eth0; ip route get OTHER; tracepath OTHER   (frames that"
                " are too large for a switch between them are lost)"
            ),
        ),
    ),
)
