import contextlib
import fcntl
import os
import queue
import threading
import time

import numpy as np


class TileCache:
    """Directory shared by all ranks of a host; scenes are pulled in from the archive on first use."""

    def __init__(self, root, archive):
        self.root = root
        self.archive = archive
        self.lockfile = os.path.join(root, ".commit.lock")
        self.wanted = queue.Queue()
        os.makedirs(root, exist_ok=True)
        threading.Thread(target=self._puller, daemon=True, name="puller").start()

    @contextlib.contextmanager
    def locked(self):
        fd = os.open(self.lockfile, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def path(self, scene):
        return os.path.join(self.root, f"{scene}.npy")

    def _commit(self, scene):
        with self.locked():
            if os.path.exists(self.path(scene)):
                return
            part = self.path(scene) + ".part"
            with open(part, "wb") as f:
                for block in self.archive.blocks(scene):
                    f.write(block)
                f.flush()
                os.fsync(f.fileno())
            os.replace(part, self.path(scene))

    def _puller(self):
        while True:
            self._commit(self.wanted.get())

    def ahead(self, scene):
        self.wanted.put(scene)

    def load(self, scene, row, rows):
        if not os.path.exists(self.path(scene)):
            self._commit(scene)
        with self.locked():
            arr = np.fromfile(self.path(scene), dtype=np.float32, count=rows * 48, offset=row * 48 * 4)
        return arr.reshape(rows, 48)


class Archive:
    """Cold storage, a few MB/s per stream."""

    def __init__(self, block=64 * 1024, rate=1.0):
        self.block = block
        self.wait = block / (rate * 1024 * 1024)

    def blocks(self, scene):
        rng = np.random.default_rng(scene)
        for _ in range(16):
            time.sleep(self.wait)
            yield rng.standard_normal(self.block // 4).astype(np.float32).tobytes()
