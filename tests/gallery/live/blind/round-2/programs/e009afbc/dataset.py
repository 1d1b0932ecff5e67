import numpy as np
import torch
from torch.utils.data import Dataset


class ScanFolder(Dataset):
    """Slices of scans, one site after the other as in the export."""

    def __init__(self, n=360, size=32):
        self.size = size
        sites = [("berlin", 64), ("lyon", 72), ("zurich", 1400)]
        self.items = [(site, px, i) for site, px in sites for i in range(n // len(sites))]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        site, px, k = self.items[i]
        rng = np.random.default_rng(k)
        img = rng.random((px, px), dtype="float32")
        img = self.equalize(img)
        step = px // self.size
        img = img[: step * self.size, : step * self.size].reshape(self.size, step, self.size, step).mean((1, 3))
        x = torch.from_numpy(img)[None]
        return x, (x > x.mean()).float()

    def equalize(self, img):
        hist, edges = np.histogram(img, bins=256)
        cdf = hist.cumsum() / hist.sum()
        return np.interp(img.ravel(), edges[:-1], cdf).reshape(img.shape).astype("float32")


class BlockSampler(torch.utils.data.Sampler):
    """Every rank keeps one contiguous block so that each site's archive is opened by one rank only."""

    def __init__(self, n, rank, world, seed=0):
        self.lo, self.hi, self.seed, self.epoch = rank * n // world, (rank + 1) * n // world, seed, 0

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        return iter((torch.randperm(self.hi - self.lo, generator=g) + self.lo).tolist())

    def __len__(self):
        return self.hi - self.lo
