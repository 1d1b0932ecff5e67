import numpy as np
import torch


class GraphBuckets:
    """Random graphs in size buckets. Every period hands the large bucket to another rank,
    so that the load evens out over the ranks."""

    SIZES = (40, 60, 80, 110)

    def __init__(self, rank, world_size, seed=0):
        self.rank, self.world_size = rank, world_size
        self.rng = np.random.default_rng(seed + rank)

    def bucket(self, period):
        return self.SIZES[(self.rank + period) % self.world_size]

    def sample(self, period):
        n = max(8, int(self.bucket(period) * self.rng.uniform(0.7, 1.3)))
        adj = (self.rng.random((n, n)) < 4.0 / n).astype("float32")
        adj = np.maximum(adj, adj.T)
        feats = self.rng.standard_normal((n, 16)).astype("float32")
        label = int(adj.sum() > 7.7 * n)
        return torch.from_numpy(adj), torch.from_numpy(feats), torch.tensor([label])
