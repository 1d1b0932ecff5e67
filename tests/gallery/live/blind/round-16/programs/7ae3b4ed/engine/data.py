import torch
from torch.utils.data import Dataset, Sampler


class Shapes(Dataset):
    def __init__(self, n, base, classes=20, size=40):
        self.n, self.base, self.classes, self.size = n, base, classes, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.base + i)
        y = i % self.classes
        x = torch.randn(3, self.size, self.size, generator=g)
        x[:, y:y + 8, y:y + 8] += 1.5
        return x, y


class ContiguousDistributedSampler(Sampler):
    """Every rank gets one contiguous, batch-aligned run of indices."""

    def __init__(self, n, batch, rank, world):
        nb = (n + batch - 1) // batch
        per, extra = divmod(nb, world)
        first = rank * per + min(rank, extra)
        self.start, self.end = first * batch, min(n, (first + per + (rank < extra)) * batch)

    def __iter__(self):
        return iter(range(self.start, self.end))

    def __len__(self):
        return self.end - self.start
