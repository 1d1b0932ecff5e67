"""Mount a file system whose server never answers (root only): `dead_mount.py FOLDER [asleep|deaf]`.
Prints `ready`; ends with the mount.

`deaf` never reads a request, so that its callers can still be killed. `asleep` takes requests and
does not answer: its callers sit in state D until it is gone, whatever signal they get.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import time

INIT, DESTROY = 26, 38  # linux/fuse.h
libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    folder, how = sys.argv[1].encode(), sys.argv[2] if len(sys.argv) > 2 else "asleep"
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"dead", folder, b"fuse", 0, options):
        raise SystemExit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if how == "asleep":
            request = os.read(device, 2**18)
            opcode, unique = struct.unpack_from("=xxxxIQ", request)
            if opcode != INIT:
                raise SystemExit(f"expected the first request to be {INIT}, got {opcode}")
            body = struct.pack(
                "=IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, 0, *[0] * 7
            )
            os.write(device, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)
        print("ready", flush=True)
        while how == "asleep":
            os.read(device, 2**18)  # and say nothing
        time.sleep(600)
    finally:
        os.close(device)
        libc.umount2(folder, 2)  # MNT_DETACH


if __name__ == "__main__":
    main()
