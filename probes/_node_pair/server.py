"""The listening side of a member: it answers, echoes, and swallows what measures throughput."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from typing import Dict, List

from _node_pair.members import PairRequest, Peer

HELLO = 18  # bytes: the token, the place of who connects, what it wants
PORT, ECHO, SINK, BYE = b"P", b"E", b"S", b"B"
ANSWER = b"trainprobe pair\n"
MOST_AT_ONCE = 256
PATIENCE_S = 3.0


class Serving:
    """Listeners on all ports, each connection in a thread. `taken` are ports that others use."""

    def __init__(self, request: PairRequest, peers: List[Peer], family: int) -> None:
        self.request = request
        self.taken: Dict[int, str] = {}
        self._peers = {peer.place: peer for peer in peers}
        self._over = threading.Event()
        self._room = threading.Semaphore(MOST_AT_ONCE)
        self._selector = selectors.DefaultSelector()
        for port in request.ports:
            listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("", port))
                listener.listen(64)
                listener.setblocking(False)  # noqa: FBT003 - its only argument
                self._selector.register(listener, selectors.EVENT_READ)
            except OSError as error:
                self.taken[port] = error.strerror or str(error)
                listener.close()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._over.set()

    def _accept(self) -> None:
        while not self._over.is_set():
            for key, _ in self._selector.select(0.2):
                assert isinstance(key.fileobj, socket.socket)
                with contextlib.suppress(OSError):
                    connection, _ = key.fileobj.accept()
                    if self._room.acquire(blocking=False):
                        threading.Thread(
                            target=self._answer, args=(connection,), daemon=True
                        ).start()
                    else:
                        connection.close()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            hello = exactly(connection, HELLO)
            peer = self._peers.get(hello[16]) if len(hello) == HELLO else None
            if peer is not None and hello[:16] == self.request.token:
                peer.heard = True
                peer.last = time.monotonic()
                peer.accepted += 1
                connection.sendall(ANSWER)
                self._serve(connection, peer, hello[17:])
        self._room.release()

    def _serve(self, connection: socket.socket, peer: Peer, wish: bytes) -> None:
        if wish == BYE:
            peer.bye = True
        if wish == ECHO:
            while not self._over.is_set():
                request = connection.recv(4096)
                if not request:
                    return
                connection.sendall(request)
        if wish == SINK:
            room = memoryview(bytearray(2**18))
            while not self._over.is_set() and connection.recv_into(room):
                pass


def exactly(connection: socket.socket, count: int) -> bytes:
    """Read so many bytes, fewer where the other side ends."""
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            break
        got += more
    return got


def hello(request: PairRequest, wish: bytes) -> bytes:
    return request.token + bytes([request.rank % 256]) + wish
