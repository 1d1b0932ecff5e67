"""One member's part in a group over plain TCP and UDP, and its report on each other member."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any, Dict, List

import _emit
from _node_pair.client import PORT_S, bye, echo, throughput, try_ports
from _node_pair.datagrams import Datagrams
from _node_pair.files import SharedFiles
from _node_pair.members import PairRequest, Peer, look_up
from _node_pair.server import Serving

LOOK_UP_S = 3.0
AGAIN_S = 0.15
SERIES_S = 3.0  # a series takes 1 s where nothing is in its way
LEAVING_S = 0.3
SILENT_S = 2.0


def talk(request: PairRequest) -> None:
    """Meet the members, try each, report, and answer until all are done. Does not return."""
    began = time.monotonic()
    with _emit.phase("look up"):
        where = look_up(request.members, request.ports[0], LOOK_UP_S)
    mine = where[request.me]
    peers = [
        Peer(name, place, where[name][1], where[name][0] or socket.AF_INET, where[name][2])
        for place, (name, _) in enumerate(request.members)
        if name != request.me
    ]
    family = (
        socket.AF_INET6 if any(peer.family == socket.AF_INET6 for peer in peers) else socket.AF_INET
    )
    files = SharedFiles(request)  # before anybody can be answered
    serving, datagrams = Serving(request, peers, family), Datagrams(request, peers, family)
    _emit.note(
        f"{request.me} is {mine[1] or 'unknown'} to itself and listens on"
        f" {len(request.ports) - len(serving.taken)} ports.",
        name="self",
        **_self(mine, serving, datagrams),
        written=sorted(files.written),
    )
    threads = [
        threading.Thread(
            target=_try_peer, args=(request, peer, datagrams, files, began), daemon=True
        )
        for peer in peers
    ]
    with _emit.phase("talk"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.1, began + request.end_s - time.monotonic()))
    with _emit.phase("answer the others"):
        until = min(began + request.end_s, time.monotonic() + request.meet_s + 2 * PORT_S)
        while time.monotonic() < until and not all(_done(peer, datagrams) for peer in peers):
            time.sleep(0.02)
    good_peers = [_tell(request, peer, datagrams) for peer in peers]
    # our last datagrams say that we are done
    time.sleep(LEAVING_S if any(peer.heard for peer in peers) else 0)
    serving.close()
    datagrams.close()
    files.remove()  # whoever was answered behind its look has seen it
    bad = [peer.name for peer, good in zip(peers, good_peers) if not good]
    if bad:
        _emit.result("no", f"{request.me} has trouble with {', '.join(bad)}.", at_once=True)
    sentence = f"{request.me} and {', '.join(peer.name for peer in peers)} reach each other."
    _emit.result("yes", sentence, at_once=True)


def _done(peer: Peer, datagrams: Datagrams) -> bool:
    """It said so, or its steady datagrams have ended."""
    silent = peer.datagrams and not datagrams.trouble and time.monotonic() - peer.last > SILENT_S
    return peer.bye or not peer.heard or bool(silent)


def _self(mine: Any, serving: Serving, datagrams: Datagrams) -> Dict[str, Any]:
    family, address, trouble = mine
    own = False
    if address:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((address, 0))
            own = True
    return {
        "address": address,
        "own_address": own,
        "trouble": trouble,
        "taken": {str(port): why for port, why in serving.taken.items()},
        "udp": datagrams.trouble,
    }


def _try_peer(
    request: PairRequest, peer: Peer, datagrams: Datagrams, files: SharedFiles, began: float
) -> None:
    if peer.trouble:
        return
    meet_until, end = began + request.meet_s, began + request.end_s
    states: Dict[int, str] = {}
    while time.monotonic() < meet_until:
        states = try_ports(
            request, peer, request.ports, min(1.0, max(0.2, meet_until - time.monotonic()))
        )
        if "ok" in states.values() or peer.heard:
            break
        time.sleep(AGAIN_S)
    _retry(request, peer, states, end)
    peer.ports = states
    good = [port for port, state in states.items() if state == "ok"]
    if good:
        peer.heard = True
        seen = files.seen(peer.place)
        peer.found.update(echo(request, peer, good[0]))
        if peer.found.get("echoes"):  # it was still there when we looked
            peer.found["files"] = seen
    series_until = min(end, time.monotonic() + SERIES_S)
    while (
        time.monotonic() < series_until
        and peer.datagrams
        and not (peer.series_over and peer.their_series_over)
    ):
        time.sleep(0.01)
    if good and time.monotonic() < end - 1:
        peer.found.update(throughput(request, peer, good[-1]))
    datagrams.leave(peer)
    if good:
        bye(request, peer, good[0])


def _retry(request: PairRequest, peer: Peer, states: Dict[int, str], end: float) -> None:
    """Let silent ports have the kernel's second attempt, twice: a slow peer is no firewall."""
    for _ in range(2):
        missing = [port for port, state in states.items() if state != "ok"]
        if (
            not missing
            or not (peer.heard or len(missing) < len(states))
            or time.monotonic() > end - PORT_S
        ):
            return
        if all(states[port] == "refused" for port in missing):
            time.sleep(AGAIN_S)
        states.update(try_ports(request, peer, missing, PORT_S))


def _tell(request: PairRequest, peer: Peer, datagrams: Datagrams) -> bool:
    ports = {str(port): state for port, state in sorted(peer.ports.items())}
    fields: Dict[str, Any] = {
        "peer": peer.name,
        "address": peer.address,
        "trouble": peer.trouble,
        "heard": peer.heard,
        "accepted": peer.accepted,
        "ports": ports,
        "datagrams": peer.datagrams,
        "series_sent": peer.sent,
        "series_came": len(peer.received),
        "series_theirs": peer.their_sent,
        "series_missing": max(0, peer.highest - len(peer.received)),
        "dropped_here": datagrams.dropped_here(),
        **peer.found,
    }
    blocked: List[str] = [f"{port} {state}" for port, state in ports.items() if state != "ok"]
    sentence = f"{request.me} to {peer.name}: "
    if peer.trouble:
        sentence += peer.trouble
    elif not peer.heard:
        sentence += f"nothing was heard from it at {peer.address}"
    elif blocked:
        sentence += f"{len(blocked)} of {len(ports)} ports do not answer ({', '.join(blocked[:6])})"
    else:
        sentence += f"all {len(ports)} ports answer"
    if "rtt_p50_ms" in peer.found:
        _emit.measure("rtt_p50_ms", peer.found["rtt_p50_ms"], "ms", who=peer.name)
        _emit.measure("rtt_p99_ms", peer.found["rtt_p99_ms"], "ms", who=peer.name)
    if "mbps" in peer.found:
        _emit.measure("throughput_mbps", peer.found["mbps"], "Mbit/s", who=peer.name)
    _emit.note(sentence, name="peer", **fields)
    return not peer.trouble and peer.heard and not blocked
