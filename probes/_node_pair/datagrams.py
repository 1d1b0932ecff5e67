"""Small datagrams both ways: who hears whom, and how many are lost. Each datagram carries what its
sender received, so that a dead or lossy direction shows at both ends.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Dict, List, Optional

from _node_pair.members import PairRequest, Peer

SERIES = 1000  # with 1 % loss, fewer than two of them get lost in one series of 2000
EACH = 5  # sent at once
PACE_S = 0.005
HELLO_S = 0.05
# not more on the way than a receive buffer holds while its process waits for a processor
WINDOW = 150
PATIENCE_S = 2.0  # for a window that does not open: then the rest is sent at the pace alone
FORMAT = struct.Struct("!4s16sBIIIIB")
MAGIC = b"tpnp"
OVER, BYE = 1, 2


class Datagrams:
    """One UDP socket and two threads. `trouble` says why there is none."""

    def __init__(self, request: PairRequest, peers: List[Peer], family: int) -> None:
        self.request, self.peers, self.trouble, self.dropped_before = request, peers, "", 0
        self._over = threading.Event()
        self._leaving: set[int] = set()
        self._socket: Optional[socket.socket] = None
        self._by_place: Dict[int, Peer] = {peer.place: peer for peer in peers}
        try:
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
            self._socket.bind(("", request.datagrams))
            self._socket.settimeout(0.2)
        except OSError as error:
            self.trouble = f"UDP port {request.datagrams}: {error.strerror or error}"
            self._socket = None
            return
        for target in (self._receive, self._send):
            threading.Thread(target=target, daemon=True).start()

    def leave(self, peer: Peer) -> None:
        """Tell this peer from now on that it need not answer any more."""
        self._leaving.add(peer.place)

    def close(self) -> None:
        self._over.set()

    def dropped_here(self) -> int:
        """Datagrams dropped at this host's full socket buffer (/proc/net/udp), not by a network."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for path in ("/proc/net/udp", "/proc/net/udp6"):
                with open(path, encoding="ascii") as file:
                    for line in list(file)[1:]:
                        row = line.split()
                        if int(row[1].rpartition(":")[2], 16) == self.request.datagrams:
                            return int(row[-1])
        return 0

    def _receive(self) -> None:
        assert self._socket is not None
        while not self._over.is_set():
            try:
                data = self._socket.recv(2048)
            except OSError:
                # nothing came, or a refusal of an earlier datagram: its port is not open yet
                continue
            if len(data) < FORMAT.size:
                continue
            magic, token, place, number, sent, highest, received, flags = FORMAT.unpack_from(data)
            peer = self._by_place.get(place)
            if magic != MAGIC or token != self.request.token or peer is None:
                continue
            peer.heard = True
            peer.last = time.monotonic()
            peer.datagrams += 1
            peer.their_sent = max(peer.their_sent, sent)
            peer.their_highest = max(peer.their_highest, highest)
            peer.their_seen = max(peer.their_seen, received)
            if 0 < number <= SERIES:
                peer.received.add(number)
                peer.highest = max(peer.highest, number)
            peer.their_series_over |= bool(flags & OVER)
            peer.bye |= bool(flags & BYE)

    def _send(self) -> None:
        """Send by the clock, so that a delayed process catches up; the window prevents a flood."""
        hello_at = 0.0
        opened: Dict[int, float] = {}
        moved: Dict[int, float] = {}
        while not self._over.is_set():
            now = time.monotonic()
            hello = now >= hello_at
            hello_at = now + HELLO_S if hello else hello_at
            busy = False
            for peer in self.peers:
                if peer.heard and not peer.series_over:
                    busy = True
                    due = min(
                        SERIES,
                        int((now - opened.setdefault(peer.place, now)) / PACE_S * EACH) + EACH,
                    )
                    room = peer.their_highest + WINDOW
                    if peer.sent < room:
                        moved[peer.place] = now
                    elif now - moved.setdefault(peer.place, now) > PATIENCE_S:
                        room = peer.sent + EACH
                    while peer.sent < min(due, room):
                        peer.sent += 1
                        self._to(peer, peer.sent)
                    peer.series_over = peer.sent >= SERIES
                if hello:
                    self._to(peer, 0)
            time.sleep(PACE_S if busy else HELLO_S)

    def _to(self, peer: Peer, number: int) -> None:
        if self._socket is None or not peer.address:
            return
        flags = (OVER if peer.series_over else 0) | (BYE if peer.place in self._leaving else 0)
        with contextlib.suppress(OSError):
            self._socket.sendto(
                FORMAT.pack(
                    MAGIC,
                    self.request.token,
                    self.request.rank,
                    number,
                    peer.sent,
                    peer.highest,
                    len(peer.received),
                    flags,
                ),
                (peer.address, self.request.datagrams),
            )
