import numpy as np
import torch
from torch.utils.data import Dataset


class Clips(Dataset):
    """A handful of long recordings, one random crop of each per epoch."""

    def __init__(self, n=384, length=2048, seed=0):
        self.n, self.length = n, length
        self.base = np.random.default_rng(seed).standard_normal(1 << 16).astype("float32")

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        start = np.random.default_rng().integers(0, len(self.base) - self.length)
        return torch.from_numpy(self.base[start:start + self.length].copy())[None], i % 8
