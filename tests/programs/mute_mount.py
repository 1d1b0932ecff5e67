"""Mount a file system with one folder of files, whose server stops answering when it is told to
(root only): `mute_mount.py VALID_S MOUNT FILE...`. Prints `ready`; a line on stdin makes it mute.
The kernel keeps names and attributes for VALID_S seconds: with many it walks a path without us.

From then on whoever asks it for anything waits, in state D where the kernel waits for a page, and
whoever is killed meanwhile stays until the mount is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import struct
import sys
from pathlib import Path

# linux/fuse.h
LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, STATFS, RELEASE = 1, 2, 3, 14, 15, 16, 17, 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, BATCH_FORGET = 25, 26, 27, 28, 29, 34, 42
SILENT = (FORGET, BATCH_FORGET)
ENOENT, ENOSYS = 2, 38
libc = ctypes.CDLL(None, use_errno=True)


class Server:
    def __init__(self, valid_s: int, files: dict[str, bytes]) -> None:
        self.valid_s = valid_s
        self.names = list(files)
        self.content = list(files.values())

    def answer(self, opcode: int, node: int, body: bytes) -> tuple[int, bytes]:
        """Return an error number and what goes with 0."""
        if opcode == INIT:
            return 0, struct.pack(
                "=IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, 0, *[0] * 7
            )
        if opcode == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.names:
                return ENOENT, b""
            found = self.names.index(name) + 2
            return 0, struct.pack(
                "=QQQQII", found, 1, self.valid_s, self.valid_s, 0, 0
            ) + self.stat(found)
        if opcode == GETATTR:
            return 0, struct.pack("=QII", self.valid_s, 0, 0) + self.stat(node)
        if opcode in (OPEN, OPENDIR):
            return 0, struct.pack("=QII", 1, 0, 0)
        if opcode in (READ, WRITE):
            return 0, self.passed(opcode, node, body)
        if opcode == STATFS:
            return 0, struct.pack("=5Q4I24x", 9, 9, 9, 9, 9, 512, 255, 512, 0)
        if opcode in (READDIR, RELEASE, RELEASEDIR, FLUSH, ACCESS):
            return 0, b""
        return ENOSYS, b""

    def passed(self, opcode: int, node: int, body: bytes) -> bytes:
        at, size = struct.unpack_from("=8xQI", body)
        held = self.content[node - 2]
        if opcode == READ:
            return held[at : at + size]
        self.content[node - 2] = held[:at].ljust(at, b"\0") + body[40:][:size]
        return struct.pack("=II", size, 0)

    def stat(self, node: int) -> bytes:
        kind, size = (0o40755, 0) if node == 1 else (0o100644, len(self.content[node - 2]))
        numbers = (node, size, 1, 0, 0, 0, 0, 0, 0, kind, 1, 0, 0, 0, 4096, 0)
        return struct.pack("=6Q10I", *numbers)


def main() -> None:
    valid_s, folder, *names = sys.argv[1:]
    files = {Path(name).name: Path(name).read_bytes() for name in names}
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"mute", folder.encode(), b"fuse", 0, options):
        raise SystemExit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server, mute = Server(int(valid_s), files), False
    print("ready", flush=True)
    try:
        while True:
            ready, _, _ = select.select([device] if mute else [device, 0], [], [])
            if 0 in ready:
                os.read(0, 100)
                mute = True
                print("mute", flush=True)
            if device not in ready:
                continue
            request = os.read(device, 2**18)
            opcode, unique, node = struct.unpack_from("=xxxxIQQ", request)
            if mute or opcode in SILENT:
                continue
            error, body = server.answer(opcode, node, request[40:])
            with contextlib.suppress(FileNotFoundError):  # who asked has been interrupted
                os.write(device, struct.pack("=IiQ", 16 + len(body), -error, unique) + body)
    finally:
        os.close(device)
        libc.umount2(folder.encode(), 2)  # MNT_DETACH


if __name__ == "__main__":
    main()
