import argparse
import ctypes
import errno
import json
import os
import stat
import struct
import threading
import time

import numpy as np

libc = ctypes.CDLL("libc.so.6", use_errno=True)


class ObjFS:
    def __init__(self, mountpoint, mapfile):
        self.mapfile = mapfile
        m = self.osdmap()
        self.names = [f"edges-{i:03d}.bin" for i in range(m["shards"])]
        self.size = m["edges"] * 12
        self.edges = m["edges"]
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        opts = f"fd={self.fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
        if libc.mount(b"objstore", os.path.abspath(mountpoint).encode(), b"fuse", 0, opts.encode()):
            raise OSError(ctypes.get_errno(), "mount")

    def osdmap(self):
        with open(self.mapfile) as f:
            return json.load(f)

    def attr(self, node):
        now = int(time.time())
        if node == 1:
            mode, size = stat.S_IFDIR | 0o755, 4096
        else:
            mode, size = stat.S_IFREG | 0o444, self.size
        return struct.pack("<6Q3I6II", node, size, (size + 511) // 512, now, now, now, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def reply(self, unique, data=b"", err=0):
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(data), -err, unique) + data)
        except OSError as e:
            print("reply failed", e, flush=True)

    def fetch(self, unique, shard, off, size):
        osd = str(shard % 4)
        waited = 0
        while shard >= 6 and self.osdmap()["osds"][osd] != "active":
            if waited % 30 == 0:
                print(f"slow request: osd.{osd} not active, object edges-{shard:03d} off {off} blocked for {waited}s", flush=True)
            time.sleep(1)
            waited += 1
        rng = np.random.default_rng(shard)
        data = rng.integers(0, 5000, size=(self.edges, 3), dtype=np.int32).tobytes()
        self.reply(unique, data[off:off + size])

    def serve(self):
        while True:
            buf = os.read(self.fd, 1 << 18)
            _, op, unique, node = struct.unpack_from("<IIQQ", buf)
            body = buf[40:]
            if op == 26:
                major, minor, ra, flags = struct.unpack_from("<4I", body)
                self.reply(unique, struct.pack("<4IHHIIHHI28x", 7, min(minor, 31), ra, 0, 12, 9, 1 << 17, 1, 32, 0, 0))
            elif op == 1:
                name = body.rstrip(b"\0").decode()
                if name in self.names:
                    n = self.names.index(name) + 2
                    self.reply(unique, struct.pack("<4Q2I", n, 0, 60, 60, 0, 0) + self.attr(n))
                else:
                    self.reply(unique, err=errno.ENOENT)
            elif op == 3:
                self.reply(unique, struct.pack("<QII", 60, 0, 0) + self.attr(node))
            elif op in (14, 27):
                self.reply(unique, struct.pack("<QII", node, 0, 0))
            elif op == 15:
                _, off, size = struct.unpack_from("<QQI", body)
                threading.Thread(target=self.fetch, args=(unique, node - 2, off, size), daemon=True).start()
            elif op == 28:
                _, off, _ = struct.unpack_from("<QQI", body)
                out = b""
                for i, name in enumerate(self.names[off:off + 32], start=off):
                    raw = name.encode()
                    out += struct.pack("<QQII", i + 2, i + 1, len(raw), 8) + raw.ljust((len(raw) + 7) // 8 * 8, b"\0")
                self.reply(unique, out)
            elif op in (18, 25, 29):
                self.reply(unique)
            elif op in (2, 36, 42):
                continue
            else:
                self.reply(unique, err=errno.ENOSYS)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("mountpoint")
    ap.add_argument("--map")
    a = ap.parse_args()
    ObjFS(a.mountpoint, a.map).serve()
