import random

import torch
from torch.utils.data import Dataset


class Tiles(Dataset):
    """Aerial survey tiles in flight order; a tile holds zero to three crowns."""

    def __init__(self, n, seed, empty_from=None):
        rng = random.Random(seed)
        self.meta = []
        for i in range(n):
            k = 0 if empty_from is not None and i >= empty_from else rng.randint(1, 3)
            self.meta.append([(rng.random(), rng.random()) for _ in range(k)])
        self.seed = seed

    def __len__(self):
        return len(self.meta)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        img = torch.randn(3, 32, 32, generator=g) * 0.2
        heat = torch.zeros(1, 8, 8)
        for x, y in self.meta[i]:
            img[:, int(y * 31), int(x * 31)] += 3.0
            heat[0, int(y * 8) % 8, int(x * 8) % 8] = 1.0
        return img, heat, i


class FlightLineSampler(torch.utils.data.Sampler):
    """Keeps neighbouring tiles on one rank so that stitching stays local."""

    def __init__(self, n, rank, world):
        per = (n + world - 1) // world
        self.ids = list(range(rank * per, min(n, (rank + 1) * per)))

    def __iter__(self):
        return iter(self.ids)

    def __len__(self):
        return len(self.ids)
