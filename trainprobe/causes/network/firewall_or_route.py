"""The ranks cannot open the ports that they need of each other.

A firewall between nodes, a security group that lets only some ports through, an address that is
routed nowhere: connects are sent again and again and nobody answers. The rendezvous may work and
the data ports, chosen at random, may not.

It is recognised by a connect without an answer (state SYN_SENT) to another host while a rank stands
at the store or in a collective, by "No route to host", and by connects of NCCL or gloo to a peer's
random port that are refused or time out before anything else failed. Refused at the rendezvous port
only, nobody serves the store (`rendezvous-incomplete`); refused at 127.0.0.1, the address is wrong
(`wrong-network-interface`).
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.network.rendezvous_incomplete import told_elsewhere
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, verb
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    FOREIGN,
    captured,
    failed_of_something_else,
    lines,
    seen_live,
    startup_failure,
    unanswered_at_the_store,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote
from trainprobe.facts import Connection, LogEvent
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message
from trainprobe.waits.unreached import hosts_by_address

NO_WAY = message("firewall-or-route.no-way")
REFUSED = message("firewall-or-route.refused")
WORDING = f"{NO_WAY}|{REFUSED}"
SHOWS = ("no-route", "peer-unanswered", "store-unanswered", "peer-refused")
# The cards' own connections are `ib-roce-misconfig`, those to the web `hub-unreachable`.
NOT_OURS = re.compile(rf"ibv_|NET/(?:IB|OFI)|{FOREIGN.pattern}")
ELSEWHERE = ("loopback-peer", "virtual-peer", "interface-missing")  # the address itself is wrong


def _unanswered(scene: Scene) -> tuple[Connection, ...]:
    """Connects of ranks that stand at the store or in a collective which nobody answers."""
    meeting = {
        thread.pid for thread in scene.threads(scene.world) if thread.leaf in WAITS_FOR_RANKS
    }
    found = [fact for fact in scene.of(Connection) if fact.pid in meeting]
    return tuple(fact for fact in found if fact.kind == "tcp" and fact.state == "SYN_SENT")


def _weigh(scene: Scene) -> Weighings:
    late = unanswered_at_the_store(scene)
    if late:
        rank, peer = late[0].rank or 0, captured(late, "host")[0]
        says = (
            f"Rank {rank} connects in vain to {peer}, where rank 0 serves the store and waits for"
            f" it: {short(late[0].line)}"
        )
        yield weighing(26, "suspects-log", says, *late)
        return
    if scene.group.mode == "crash":
        yield from _from_log(scene)
        return
    unanswered = _unanswered(scene)
    if unanswered:
        first = unanswered[0]
        again = f", sent again {first.retransmits} times" if first.retransmits else ""
        points = 13 if first.retransmits or len(unanswered) > 1 else 10
        # a host that takes part in the job lives; what is sent again and again is dropped
        if {one.remote.rpartition(":")[0] for one in unanswered if one.retransmits} & set(
            hosts_by_address(scene.of(Connection))
        ):
            points = 26
        says = f"Pid {first.pid} connects to {first.remote} and has no answer{again}"
        yield weighing(points, "network", says, *unanswered)
        threads = [
            thread
            for thread in scene.threads(scene.world)
            if thread.pid in {one.pid for one in unanswered}
        ]
        ranks = [thread.rank or 0 for thread in threads]
        op = threads[0].op or "the rendezvous"
        says = f"{ranks_say(ranks)} {verb(ranks, 'stands', 'stand')} in {op} meanwhile"
        yield weighing(10, "suspects-stack", says, *threads)
        apart = told_elsewhere(scene)
        if apart is not None and apart.sure and apart.name == "MASTER_ADDR":
            says = f"No other rank was told the address {apart.value}"
            yield weighing(-26, "environment-and-limits", says, scene.live)
    if scene.live is None:
        yield from _from_log(scene)
        return
    routes = [event for event in scene.of(LogEvent) if event.event == "no-route"]
    if routes:
        yield weighing(10, "suspects-log", f"The output says: {routes[-1].line[:120]}", routes[-1])


def _from_log(scene: Scene) -> Weighings:
    found = startup_failure(
        scene, NO_WAY, "no-route", "peer-unanswered", unlike=NOT_OURS
    ) or startup_failure(scene, REFUSED, *SHOWS, unlike=NOT_OURS)
    if found is None:
        proxy = [
            event
            for event in lines(scene, "nccl-proxy-failed")
            if event.captured.get("call") == "Connect"
        ]
        if proxy and not failed_of_something_else(scene):
            yield quote(13, "A rank could not be connected to", proxy[0])
        return
    refused = "refused" in found.text
    if lines(scene, *ELSEWHERE):
        yield quote(6, "A connection is not answered", found)
    elif refused and failed_of_something_else(scene):
        yield quote(3, "A connection is refused, as by a rank that is gone", found)
    else:
        yield from weigh_startup_failure(scene, found, sure=26, at_start=True)


def _ranks(scene: Scene) -> tuple[int, ...]:
    pids = {one.pid for one in _unanswered(scene)}
    return tuple(
        sorted(
            {
                thread.rank
                for thread in scene.threads(scene.world)
                if thread.pid in pids and thread.rank is not None
            }
        )
    ) or seen_live(scene)


def _summary(scene: Scene) -> str:
    who, unanswered = _ranks(scene), _unanswered(scene)
    late = unanswered_at_the_store(scene)
    if late:
        ranks = sorted({event.rank for event in late if event.rank is not None})
        return (
            f"{ranks_say(ranks)} cannot open a connection to port {captured(late, 'port')[0]} of"
            f" {captured(late, 'host')[0]}, where rank 0 listens"
        )
    to = (
        and_list(list(dict.fromkeys(one.remote for one in unanswered))[:3])
        or and_list(_peers(scene)[:3])
        or "another rank"
    )
    return f"{ranks_say(who)} cannot open a connection to {to}: nothing answers there"


def _peers(scene: Scene) -> tuple[str, ...]:
    """Whom connects were sent to in vain, as the log has it."""
    found = lines(scene, *SHOWS) or unanswered_at_the_store(scene)
    return captured(found, "peer") or captured(found, "host")


FIXES = """
See how far packets come
    ip route get {host}
    timeout 5 bash -c '</dev/tcp/{host}/{port}' && echo open
See that the address is the right one
    echo $MASTER_ADDR; getent hosts $MASTER_ADDR
    export GLOO_SOCKET_IFNAME=<INTERFACE> NCCL_SOCKET_IFNAME=<INTERFACE>   (of that route)
[admin] Open the ports between the nodes
    iptables -L -n; sysctl net.ipv4.ip_local_port_range
"""


def _fixes(scene: Scene) -> Fixes:
    unanswered = _unanswered(scene)
    ports = captured(lines(scene, *SHOWS) or unanswered_at_the_store(scene), "port")
    host, _, port = (
        unanswered[0].remote.rpartition(":")
        if unanswered
        else (next(iter(_peers(scene)), "HOST"), "", next(iter(ports), "PORT"))
    )
    return fixes(FIXES, host=host, port=port)


CAUSE = Cause(
    id="firewall-or-route",
    title="A rank's connection is not answered",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="ss -tnp state syn-sent, and a connect to that address by hand",
    refines="rendezvous-incomplete",
    accounts_for=("rank-stuck", "user-exception", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("cannot be reached as it must be", "do not reach each other as they must"),
        checks=("net.ports",),
        hows=("blocked-ports", "one-way", "refused", "unreachable"),
        admin=(
            (
                "nft list ruleset; iptables -L -n; ip route   (there, and what the switch or the"
                " security group lets through)"
            ),
        ),
    ),
)
