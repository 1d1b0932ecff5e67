"""The connecting side of a member: ports, round trips and throughput towards one other member."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import struct
import time
from typing import Any, Dict, List, Optional, Sequence

from _node_pair.members import PairRequest, Peer
from _node_pair.server import ANSWER, BYE, ECHO, PORT, SINK, exactly, hello

PORT_S = 2.5  # the kernel asks again after 1 s
ECHOES, ECHO_S = 60, 0.6
SEND_S, WINDOW_S = 0.5, 0.1
# with 400 ms for a round trip TCP needs 1.6 s for so much; where large packets vanish nothing comes
# at all
STUCK_BYTES = 2**16
STUCK_S = 3.0
# what is sent at most: enough to tell a crippled link, and no burden for a shared one
MOST_MBPS = 250
CHUNK = 2**16
TCP_INFO_BYTES = 160
RESET = struct.pack("ii", 1, 0)
UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


def try_ports(
    request: PairRequest, peer: Peer, ports: Sequence[int], within_s: float
) -> Dict[int, str]:
    """Connect to all ports at once. foreign: somebody else answered; silent: nobody did."""
    states: Dict[int, str] = dict.fromkeys(ports, "timeout")
    until = time.monotonic() + within_s
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as opened:
        for port in ports:
            item = opened.enter_context(socket.socket(peer.family, socket.SOCK_STREAM))
            item.setblocking(False)  # noqa: FBT003 - its only argument
            code = item.connect_ex((peer.address, port))
            if code in (0, errno.EINPROGRESS):
                selector.register(item, selectors.EVENT_WRITE, port)
            else:
                states[port] = _state(code)
        while selector.get_map() and time.monotonic() < until:
            for key, mask in selector.select(max(0.0, until - time.monotonic())):
                assert isinstance(key.fileobj, socket.socket)
                if mask & selectors.EVENT_WRITE:
                    code = key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if code:
                        states[key.data] = _state(code)
                        selector.unregister(key.fileobj)
                        continue
                    states[key.data] = "silent"
                    with contextlib.suppress(OSError):
                        key.fileobj.send(hello(request, PORT))
                    selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                else:
                    selector.unregister(key.fileobj)
                    states[key.data] = _heard(key.fileobj)
    return states


def _heard(item: socket.socket) -> str:
    try:
        reply = item.recv(64)
    except OSError as error:
        return _state(error.errno or 0)
    return "ok" if reply.startswith(ANSWER[:8]) else "reset" if not reply else "foreign"


def _state(code: int) -> str:
    if code == errno.ECONNREFUSED:
        return "refused"
    return (
        "unreachable"
        if code in UNREACHABLE
        else (
            "reset"
            if code == errno.ECONNRESET
            else "timeout"
            if code == errno.ETIMEDOUT
            else os.strerror(code)
        )
    )


def opened(
    request: PairRequest, peer: Peer, port: int, wish: bytes, within_s: float
) -> Optional[socket.socket]:
    """Connect, ask for something, and wait for the answer; None where that fails."""
    item = socket.socket(peer.family, socket.SOCK_STREAM)
    try:
        item.settimeout(within_s)
        item.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        item.connect((peer.address, port))
        item.sendall(hello(request, wish))
        if exactly(item, len(ANSWER)) == ANSWER:
            return item
    except OSError:
        pass  # said by the states of the ports
    item.close()
    return None


def echo(request: PairRequest, peer: Peer, port: int) -> Dict[str, Any]:
    """Round trips of 16 bytes: p50 and p99 in ms, the kernel's least, and resent segments."""
    item = opened(request, peer, port, ECHO, PORT_S)
    if item is None:
        return {"echo": "no connection"}
    took: List[float] = []
    trouble = ""
    with item:
        until = time.monotonic() + ECHO_S
        try:
            while len(took) < 2 or (len(took) < ECHOES and time.monotonic() < until):
                began = time.perf_counter()
                item.sendall(b"trainprobe echo.")
                if len(exactly(item, 16)) < 16:
                    trouble = "the connection ended"
                    break
                took.append((time.perf_counter() - began) * 1000)
        except OSError as error:
            trouble = (
                "no answer in time"
                if isinstance(error, socket.timeout)
                else error.strerror or str(error)
            )
        info = tcp_info(item)
    found: Dict[str, Any] = {"echoes": len(took), "retransmitted": info.get("retransmitted", 0)}
    if trouble:
        found["echo"] = trouble
    if took:
        took.sort()
        found.update(
            rtt_p50_ms=round(took[len(took) // 2], 4),
            rtt_p99_ms=round(took[min(len(took) - 1, len(took) * 99 // 100)], 4),
        )
        found["rtt_least_ms"] = round(min(took[0], info.get("least_rtt_us", 1e9) / 1000), 4)
    return found


def throughput(request: PairRequest, peer: Peer, port: int) -> Dict[str, Any]:
    """Send briefly; measure Mbit/s of the best tenth of a second, segments, and resent ones."""
    item = opened(request, peer, port, SINK, PORT_S)
    if item is None:
        return {}
    marks: List[Any] = []
    with item:
        item.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**19)
        item.settimeout(WINDOW_S / 2)
        load, sent, began, whole = memoryview(bytes(CHUNK)), 0, time.monotonic(), False
        with contextlib.suppress(OSError):
            while time.monotonic() - began < SEND_S or (
                tcp_info(item).get("acknowledged", STUCK_BYTES) < STUCK_BYTES
                and time.monotonic() - began < STUCK_S
            ):
                if sent > (time.monotonic() - began) * MOST_MBPS * 125_000:
                    time.sleep(0.002)
                else:
                    with contextlib.suppress(socket.timeout):
                        sent += item.send(load)
                now = time.monotonic()
                if not marks or now - marks[-1][0] >= WINDOW_S:
                    marks.append((now, tcp_info(item).get("acknowledged", sent)))
            whole = True
        info = tcp_info(item)
        marks.append((time.monotonic(), info.get("acknowledged", sent)))
        with contextlib.suppress(OSError):
            # what is still queued need not arrive
            item.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    steady = marks[1:] if len(marks) > 2 else marks  # a limit lets a first burst pass
    rates = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for earlier, later in zip(steady, steady[1:])
        if later[0] - earlier[0] >= WINDOW_S / 2
    ]
    average = marks[-1][1] / max(1e-6, marks[-1][0] - began)
    return {
        "mbps": round((max(rates) if rates else average) * 8 / 1e6, 3),
        "stuck": whole and marks[-1][1] < STUCK_BYTES,
        "mbytes": round(marks[-1][1] / 1e6, 3),
        "segments": info.get("segments", 0),
        "segments_again": info.get("retransmitted", 0),
        "segments_lost": info.get("lost", 0),
    }


def bye(request: PairRequest, peer: Peer, port: int) -> None:
    item = opened(request, peer, port, BYE, 1.0)
    if item is not None:
        item.close()


def tcp_info(item: socket.socket) -> Dict[str, int]:
    """What Linux's struct tcp_info says (include/uapi/linux/tcp.h); empty where there is none."""
    try:
        raw = item.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except (OSError, AttributeError):
        return {}
    found: Dict[str, int] = {}
    for name, form, at in (
        ("lost", "I", 32),
        ("retransmitted", "I", 100),
        ("acknowledged", "Q", 120),
        ("segments", "I", 136),
        ("least_rtt_us", "I", 148),
    ):
        if len(raw) >= at + struct.calcsize(form):
            found[name] = struct.unpack_from(form, raw, at)[0]
    if found.get("least_rtt_us", 0) in (0, 0xFFFFFFFF):
        found.pop("least_rtt_us", None)
    return found
