"""Trains three steps behind a port of its own. `--leave N MIB listen|idle|burn` leaves N orphans
behind, `--stay` lives for half a second.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

PORT = int((Path(__file__).parent / "port").read_text())


def listen() -> socket.socket:
    server = socket.socket()
    server.bind(("127.0.0.1", PORT))
    server.listen()
    return server


def leave(count: int, mib: int, how: str) -> None:
    for number in range(count):
        if os.fork():
            continue
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        held = [b"x" * mib * 2**20, listen() if how == "listen" and number == 0 else None]
        time.sleep(120)
        os._exit(len(held) and 0)


if "--leave" in sys.argv:
    leave(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
elif "--stay" in sys.argv:
    time.sleep(0.5)
else:
    server = listen()
    for step in range(3):
        print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
        time.sleep(0.05)
