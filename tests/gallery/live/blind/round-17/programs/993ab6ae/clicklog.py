import glob
import os

import numpy as np
import torch

NUM_DENSE = 4
NUM_SPARSE = 15
ROW = 1 + NUM_DENSE + NUM_SPARSE


class ClickLogReader:
    """Reads the daily parts assigned to one rank, one part at a time."""

    def __init__(self, root, rank, world_size, batch_size, epochs):
        parts = sorted(glob.glob(os.path.join(root, "part-*.bin")))
        self.parts = parts[rank::world_size]
        self.batch_size = batch_size
        self.epochs = epochs

    def _load(self, path):
        with open(path, "rb") as f:
            raw = f.read()
        return np.frombuffer(raw, dtype=np.int32).reshape(-1, ROW)

    def __iter__(self):
        for _ in range(self.epochs):
            for path in self.parts:
                rows = self._load(path)
                for i in range(0, len(rows) - self.batch_size + 1, self.batch_size):
                    chunk = torch.from_numpy(rows[i : i + self.batch_size].astype(np.int64))
                    yield {
                        "label": chunk[:, 0].float(),
                        "dense": torch.log1p(chunk[:, 1 : 1 + NUM_DENSE].float()),
                        "sparse": chunk[:, 1 + NUM_DENSE :],
                    }
