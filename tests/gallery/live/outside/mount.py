"""A file system over /dev/fuse that answers until the first read or write of a file, and then nothing more."""

import ctypes
import os
import struct
import sys
import time

folder = sys.argv[1].encode()
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"nas01:/export", folder, b"fuse.sshfs", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd):
    sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
print("ready", flush=True)

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 4, 14, 15, 16, 17, 18, 25, 26
OPENDIR, ACCESS, CREATE, INTERRUPT, RELEASEDIR, FSYNC = 27, 34, 35, 36, 29, 20


def attributes(node):
    mode, size = (0o40755, 4096) if node == 1 else (0o100644, 1 << 20)
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def entry(node):
    return struct.pack("<4Q2I", node, 0, 60, 60, 0, 0) + attributes(node)


def answer(unique, body=b"", error=0):
    os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


while True:
    request = os.read(fd, 1 << 18)
    _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
    if opcode == INIT:
        answer(unique, struct.pack("<4I2H2I2HI7I", 7, 31, 65536, 0, 8, 8, 65536, 1, 0, 0, 0, *[0] * 7))
    elif opcode == GETATTR or opcode == SETATTR:
        answer(unique, struct.pack("<QII", 60, 0, 0) + attributes(node))
    elif opcode == LOOKUP:
        answer(unique, entry(2)) if b"shard" in request[40:] else answer(unique, error=-2)
    elif opcode in (OPEN, OPENDIR):
        answer(unique, struct.pack("<QII", 1, 0, 0))
    elif opcode == CREATE:
        answer(unique, entry(3) + struct.pack("<QII", 1, 0, 0))
    elif opcode == STATFS:
        answer(unique, struct.pack("<5Q4I6I", 1 << 20, 1 << 19, 1 << 19, 1000, 900, 4096, 255, 4096, 0, *[0] * 6))
    elif opcode in (READ, WRITE):
        time.sleep(100_000)
    elif opcode in (FORGET, INTERRUPT):
        continue
    elif opcode in (FLUSH, RELEASE, RELEASEDIR, FSYNC, ACCESS):
        answer(unique)
    else:
        answer(unique, error=-38)
