"""A cable in user space: two TAP interfaces, and every frame that one gets comes out of the other
after a while. For kernels without netem.

    python relay.py OUTER INNER CONTROL

makes both interfaces and writes `ready` to stdout. CONTROL is a file with the delay of one way in
milliseconds; it is read again ten times a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MOST = 20_000  # frames under way; a longer queue would be dropped by a real switch, too


def tap(name: str) -> int:
    """Make a TAP interface and return its descriptor; the interface lives as long as it is open,
    in whichever namespace.
    """
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def relay(outer: int, inner: int, control: str) -> None:
    """Carry frames both ways, for ever."""
    other = {outer: inner, inner: outer}
    under_way: list[tuple[float, int, int, bytes]] = []
    delay_s, read_at, count = 0.0, 0.0, 0
    while True:
        now = time.monotonic()
        if now - read_at > 0.1:
            read_at = now
            with contextlib.suppress(OSError, ValueError), open(control, encoding="ascii") as file:
                delay_s = float(file.read() or 0) / 1000
        wait = min(0.1, max(0.0, under_way[0][0] - now)) if under_way else 0.1
        for device in select.select([outer, inner], [], [], wait)[0]:
            with contextlib.suppress(OSError):
                for _ in range(64):
                    frame = os.read(device, 65536)
                    count += 1
                    if len(under_way) < MOST:
                        heapq.heappush(
                            under_way, (time.monotonic() + delay_s, count, other[device], frame)
                        )
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, device, frame = heapq.heappop(under_way)
            with contextlib.suppress(OSError):
                os.write(device, frame)


def main() -> None:
    outer, inner, control = sys.argv[1:]
    devices = tap(outer), tap(inner)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    relay(*devices, control)


if __name__ == "__main__":
    main()
