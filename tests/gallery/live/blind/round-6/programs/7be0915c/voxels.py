import numpy as np
import torch
from torch.utils.data import Dataset


class RangeFilter:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, pts):
        return pts[np.abs(pts).max(1) < self.limit]


class RemoveSparsePoints:
    """Keeps points that have enough neighbours within a radius."""

    def __init__(self, radius=1.5, least=2):
        self.r2, self.least = radius ** 2, least

    def __call__(self, pts):
        keep = np.zeros(len(pts), bool)
        for k in range(len(pts)):
            d = ((pts - pts[k]) ** 2).sum(1)
            keep[k] = (d < self.r2).sum() > self.least
        return pts[keep]


class Pillars:
    def __init__(self, grid=16, limit=20.0):
        self.grid, self.limit = grid, limit

    def __call__(self, pts):
        ij = ((pts[:, :2] + self.limit) / (2 * self.limit) * self.grid).astype(int).clip(0, self.grid - 1)
        out = np.zeros((2, self.grid, self.grid), "float32")
        np.add.at(out[0], (ij[:, 0], ij[:, 1]), 1)
        np.add.at(out[1], (ij[:, 0], ij[:, 1]), pts[:, 2])
        return out


class DriveDataset(Dataset):
    def __init__(self, infos, pipeline):
        self.infos, self.pipeline = infos, pipeline

    def __len__(self):
        return len(self.infos)

    def __getitem__(self, i):
        info = self.infos[i]
        rng = np.random.default_rng(info["seed"])
        pts = rng.normal(0, 8, (info["points"], 3))
        for step in self.pipeline:
            pts = step(pts)
        return torch.from_numpy(pts), torch.tensor(float(info["boxes"]))
