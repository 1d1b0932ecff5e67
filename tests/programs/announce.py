"""How these programs say "here I am" to the test: one line `NAME PID` into the FIFO that
TRAINPROBE_TEST_FIFO names.
"""

from __future__ import annotations

import os


def announce(name: str, pid: int = 0) -> None:
    fifo = os.open(os.environ["TRAINPROBE_TEST_FIFO"], os.O_WRONLY)
    os.write(fifo, f"{name} {pid or os.getpid()}\n".encode())
    os.close(fifo)
