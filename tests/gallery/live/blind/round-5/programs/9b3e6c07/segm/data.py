import numpy as np
import torch
from torch.utils.data import Dataset


class Tiles(Dataset):
    """decodes a tile: a few filters over the raw band data"""

    def __init__(self, n=100000, size=160):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        a = rng.standard_normal((self.size, self.size)).astype("float32")
        for _ in range(3):
            a = np.real(np.fft.ifft2(np.fft.fft2(a) * 0.9)).astype("float32")
        return torch.from_numpy(a[None, ::4, ::4].copy())
