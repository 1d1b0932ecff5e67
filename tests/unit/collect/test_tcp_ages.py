"""Ages of connections from the kernel's own socket diagnosis."""

from __future__ import annotations

import os
import socket
import struct
import time

import pytest

from trainprobe.collect.tcp_ages import ask, parse


def test_a_silent_connection_grows_old_and_a_word_makes_it_young() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as here,
        server.accept()[0] as there,
    ):
        inode = os.fstat(here.fileno()).st_ino
        here.sendall(b"x")
        there.recv(1)
        time.sleep(0.3)
        first = ask()
        if not first:
            pytest.skip("this kernel gives no socket diagnosis")
        assert 0.25 <= first[inode] < 10
        there.sendall(b"y")
        here.recv(1)
        assert ask()[inode] < first[inode]


def message(inode: int, sent_ms: int, received_ms: int, info_bytes: int = 104) -> bytes:
    info = bytearray(info_bytes)
    struct.pack_into("=I", info, 44, sent_ms)
    struct.pack_into("=I", info, 52, received_ms)
    body = (
        b"\0" * 68 + struct.pack("=I", inode) + struct.pack("=HH", 4 + info_bytes, 2) + bytes(info)
    )
    return struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 0) + body


def test_the_later_of_sent_and_received_counts() -> None:
    found: dict[int, float] = {}
    assert parse(message(7, 90_000, 4_500) + message(8, 10, 90_000), found)
    assert found == {7: 4.5, 8: 0.01}
    assert not parse(struct.pack("=IHHII", 16, 3, 2, 1, 0), found)


@pytest.mark.parametrize("cut", range(0, 190, 7))
def test_a_torn_reply_is_no_fault(cut: int) -> None:
    found: dict[int, float] = {}
    parse(message(7, 90_000, 4_500)[:cut], found)
    assert set(found) <= {7}
