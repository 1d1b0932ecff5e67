import gzip
import os
import threading

import numpy as np
import torch
from torch.utils.data import Dataset

ROWS, DIM = 24000, 256


def write_shards(root, count):
    rng = np.random.default_rng(5)
    for k in range(count):
        path = os.path.join(root, f"val-{k:03d}.f32.gz")
        with gzip.open(path + ".part", "wb", compresslevel=1) as f:
            base = rng.standard_normal((ROWS // 8, DIM), dtype=np.float32)
            for _ in range(8):
                f.write(np.round(base + rng.standard_normal(DIM, dtype=np.float32), 1).astype(np.float32).tobytes())
        os.rename(path + ".part", path)


class ShardCache:
    """Keeps decompressed shards in memory; a thread fetches shards ahead of their use."""

    def __init__(self):
        self._lock = threading.Lock()
        self._arrays = {}

    def _read(self, path):
        with gzip.open(path, "rb") as f:
            return np.frombuffer(f.read(), dtype=np.float32).reshape(-1, DIM)

    def get(self, path):
        with self._lock:
            if path not in self._arrays:
                self._arrays[path] = self._read(path)
            return self._arrays[path]

    def prefetch(self, paths):
        paths = [p for p in paths if p not in self._arrays]
        if paths:
            threading.Thread(target=lambda: [self.get(p) for p in paths], name="shard-prefetch", daemon=True).start()


class ShardDataset(Dataset):
    def __init__(self, paths, cache, stride=40):
        self.paths, self.cache, self.stride = paths, cache, stride
        self.per_shard = ROWS // stride

    def __len__(self):
        return len(self.paths) * self.per_shard

    def __getitem__(self, i):
        arr = self.cache.get(self.paths[i // self.per_shard])
        return torch.from_numpy(arr[(i % self.per_shard) * self.stride].copy())
