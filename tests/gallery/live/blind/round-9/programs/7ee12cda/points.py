import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


class PointSets(IterableDataset):
    """Endless stream of labelled point sets; every worker of every rank has its own seed."""

    def __init__(self, rank, batch=24, dim=10, classes=12):
        self.rank, self.batch, self.dim, self.classes = rank, batch, dim, classes
        self.centers = np.random.default_rng(0).standard_normal((classes, dim)).astype(np.float32)

    def __iter__(self):
        info = get_worker_info()
        rng = np.random.default_rng([self.rank, info.id if info else 0])
        while True:
            y = rng.integers(self.classes, size=self.batch)
            n = rng.integers(20, 160, size=self.batch)
            x = np.zeros((self.batch, n.max(), self.dim), dtype=np.float32)
            mask = np.arange(n.max())[None] < n[:, None]
            x[mask] = rng.standard_normal((mask.sum(), self.dim)).astype(np.float32)
            x += self.centers[y][:, None] * mask[..., None]
            yield torch.from_numpy(x), torch.from_numpy(mask), torch.from_numpy(y)
