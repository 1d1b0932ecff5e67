import time

import torch
from torch.utils.data import Dataset


class Spectra(Dataset):
    """Synthetic mass spectra; opening the index takes a while in every worker."""

    def __init__(self, n=4000, bins=128):
        self.n, self.bins, self.index = n, bins, None

    def _open(self):
        time.sleep(6)
        self.index = torch.arange(self.n)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.index is None:
            self._open()
        g = torch.Generator().manual_seed(int(self.index[i]))
        x = torch.rand(self.bins, generator=g)
        if i % 97 == 0:
            time.sleep(0.3)
        return x, x[: self.bins // 2].sum()
