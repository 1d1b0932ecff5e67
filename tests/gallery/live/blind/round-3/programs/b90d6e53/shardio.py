"""Reading of packed feature shards. The codec keeps global state, so calls are serialised."""
import threading
import zlib

import numpy as np

_codec = threading.RLock()


def write_shard(path, rows, dim, seed):
    rng = np.random.default_rng(seed)
    with open(path, "wb") as f:
        f.write(zlib.compress(rng.standard_normal((rows, dim)).astype("float32").tobytes(), 1))


class Shard:
    def __init__(self, path, dim):
        self.path, self.dim = path, dim

    def read(self):
        with _codec:
            with open(self.path, "rb") as f:
                raw = zlib.decompress(f.read())
            return np.frombuffer(raw, dtype="float32").reshape(-1, self.dim)

    def statistics(self, passes=400):
        with _codec:
            x = self.read()
            mean = np.zeros(self.dim)
            for _ in range(passes):
                mean += x.mean(0)
            return mean / passes, x.std(0)
