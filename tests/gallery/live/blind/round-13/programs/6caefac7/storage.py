import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger("storage")

_POLY = 0xC96C5795D7870F42


def _build_table():
    table = []
    for n in range(256):
        crc = n
        for _ in range(8):
            crc = (crc >> 1) ^ _POLY if crc & 1 else crc >> 1
        table.append(crc)
    return table


_TABLE = _build_table()


def crc64(data, crc=0):
    crc ^= 0xFFFFFFFFFFFFFFFF
    for b in data:
        crc = _TABLE[(crc ^ b) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFFFFFFFFFF


class Bucket:
    def __init__(self, root, part_size=1 << 20):
        self.root = root
        self.part_size = part_size
        os.makedirs(root, exist_ok=True)

    def put_object_from_file(self, key, path):
        digest = 0
        dst = os.path.join(self.root, key)
        with open(path, "rb") as src, open(dst, "wb") as out:
            while True:
                part = src.read(self.part_size)
                if not part:
                    break
                digest = crc64(part, digest)
                out.write(part)
        return digest


class AsyncUploader:
    def __init__(self, bucket, workers=2):
        self.bucket = bucket
        self.pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="ckpt-upload")
        self.pending = []

    def _upload(self, key, path):
        t0 = time.time()
        digest = self.bucket.put_object_from_file(key, path)
        os.unlink(path)
        log.info("uploaded %s crc64=%016x in %.1fs", key, digest, time.time() - t0)

    def busy(self):
        self.pending = [f for f in self.pending if not f.done()]
        return len(self.pending) >= 2

    def submit(self, key, path):
        self.pending.append(self.pool.submit(self._upload, key, path))

    def drain(self):
        for f in self.pending:
            f.result()
