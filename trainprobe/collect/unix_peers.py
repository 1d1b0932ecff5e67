"""Which unix sockets are connected, by netlink (sock_diag(7)); /proc does not tell."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Dict

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST_DUMP = 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
SHOW_PEER, SHOW_QUEUES = 0x04, 0x10
ATTRIBUTE_PEER, ATTRIBUTE_QUEUES = 2, 4
ALL = 0xFFFFFFFF


@dataclass(frozen=True)
class UnixSocket:
    """The other end's inode (0: none), and the bytes to be read here and there."""

    peer: int = 0
    rx_queue: int = 0
    tx_queue: int = 0


def ask(timeout_s: float = 0.5) -> Dict[int, UnixSocket]:
    """Inode to socket for the unix sockets of our network namespace; empty without an answer."""
    found: Dict[int, UnixSocket] = {}
    ends = time.monotonic() + timeout_s
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
            request = struct.pack(
                "=BBHIIIII", socket.AF_UNIX, 0, 0, ALL, 0, SHOW_PEER | SHOW_QUEUES, ALL, ALL
            )
            netlink.send(
                struct.pack(
                    "=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0
                )
                + request
            )
            while time.monotonic() < ends:
                netlink.settimeout(max(0.01, ends - time.monotonic()))
                if not parse(netlink.recv(65536), found):
                    break
    except (OSError, AttributeError):
        return found
    return found


def parse(reply: bytes, found: Dict[int, UnixSocket]) -> bool:
    """Add the sockets of one reply. Return whether more replies follow."""
    begin = 0
    while begin + 16 <= len(reply):
        length, kind = struct.unpack_from("=IH", reply, begin)
        if kind in (NLMSG_DONE, NLMSG_ERROR) or length < 16:
            return False
        end = min(begin + length, len(reply))
        if end - begin >= 32:
            inode = struct.unpack_from("=I", reply, begin + 20)[0]
            found[inode] = _socket(reply, begin + 32, end)
        begin += (length + 3) & ~3
    return True


def _socket(reply: bytes, begin: int, end: int) -> UnixSocket:
    peer = rx_queue = tx_queue = 0
    while begin + 4 <= end:
        length, kind = struct.unpack_from("=HH", reply, begin)
        if length < 4:
            break
        if kind == ATTRIBUTE_PEER and length >= 8 and begin + 8 <= end:
            peer = struct.unpack_from("=I", reply, begin + 4)[0]
        elif kind == ATTRIBUTE_QUEUES and length >= 12 and begin + 12 <= end:
            rx_queue, tx_queue = struct.unpack_from("=II", reply, begin + 4)
        begin += (length + 3) & ~3
    return UnixSocket(peer, rx_queue, tx_queue)
