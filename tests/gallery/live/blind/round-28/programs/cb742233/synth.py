"""Tabular click data."""
import torch
from torch.utils.data import Dataset


class ClickLog(Dataset):
    def __init__(self, n=20000, dim=48, seed=7):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, dim, generator=g) * 0.5
        w = torch.randn(dim, generator=g)
        self.y = ((self.x @ w) > 0).float()
        # impressions
        self.x[:, 3] = torch.rand(n, generator=g) * 4
        big = torch.arange(9546, n, 9001)
        self.x[big, 3] = 180000.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def shard(dataset, rank, world):
    """Contiguous shard per worker, as the files on disk are laid out."""
    per = len(dataset) // world
    return torch.utils.data.Subset(dataset, range(rank * per, (rank + 1) * per))
