"""How long each TCP connection has been silent, asked of the kernel over netlink (sock_diag(7),
struct tcp_info of linux/tcp.h).

A look at a stack wakes the thread, so that a second visit finds nobody who has slept for long; what
the connections last carried stays.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Dict

from trainprobe.collect.unix_peers import (
    NETLINK_SOCK_DIAG,
    NLM_F_REQUEST_DUMP,
    NLMSG_DONE,
    NLMSG_ERROR,
    SOCK_DIAG_BY_FAMILY,
)

INET_DIAG_INFO = 2
ESTABLISHED = 1 << 1
HEADER_BYTES, MESSAGE_BYTES, ID_BYTES = 16, 72, 48
INODE_AT, SENT_AT, RECEIVED_AT = (
    68,
    44,
    52,
)  # within inet_diag_msg, and within tcp_info: milliseconds since data was last sent and received


def ask(timeout_s: float = 0.3) -> Dict[int, float]:
    """Inode to seconds since data last went either way, for established connections here."""
    found: Dict[int, float] = {}
    ends = time.monotonic() + timeout_s
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
                request = (
                    struct.pack(
                        "=BBBBI",
                        family,
                        socket.IPPROTO_TCP,
                        1 << (INET_DIAG_INFO - 1),
                        0,
                        ESTABLISHED,
                    )
                    + b"\0" * ID_BYTES
                )
                netlink.send(
                    struct.pack(
                        "=IHHII",
                        HEADER_BYTES + len(request),
                        SOCK_DIAG_BY_FAMILY,
                        NLM_F_REQUEST_DUMP,
                        1,
                        0,
                    )
                    + request
                )
                more = True
                while more and time.monotonic() < ends:
                    netlink.settimeout(max(0.01, ends - time.monotonic()))
                    more = parse(netlink.recv(1 << 18), found)
        except (OSError, AttributeError):
            continue
    return found


def parse(reply: bytes, found: Dict[int, float]) -> bool:
    """Add the connections of one reply. Return whether more replies follow."""
    begin = 0
    while begin + HEADER_BYTES <= len(reply):
        length, kind = struct.unpack_from("=IH", reply, begin)
        if kind in (NLMSG_DONE, NLMSG_ERROR) or length < HEADER_BYTES:
            return False
        end = min(begin + length, len(reply))
        body = begin + HEADER_BYTES
        if end - body >= MESSAGE_BYTES:
            silent_ms = _silent_ms(reply, body + MESSAGE_BYTES, end)
            if silent_ms is not None:
                found[struct.unpack_from("=I", reply, body + INODE_AT)[0]] = silent_ms / 1000
        begin += (length + 3) & ~3
    return True


def _silent_ms(reply: bytes, begin: int, end: int) -> int | None:
    while begin + 4 <= end:
        length, kind = struct.unpack_from("=HH", reply, begin)
        if length < 4:
            return None
        if kind == INET_DIAG_INFO and length >= 4 + RECEIVED_AT + 4 and begin + length <= end:
            info = begin + 4
            return int(
                min(
                    struct.unpack_from("=I", reply, info + SENT_AT)[0],
                    struct.unpack_from("=I", reply, info + RECEIVED_AT)[0],
                )
            )
        begin += (length + 3) & ~3
    return None
