import torch
from torch.utils.data import Dataset


class KeypointFrames(Dataset):
    def __init__(self, n, size=20, parts=3, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.size = size
        self.xy = torch.randint(3, size - 3, (n, parts, 2), generator=g)
        self.noise = torch.randn(n, 1, size, size, generator=g) * 0.05
        ax = torch.arange(size)
        self.ax = ax

    def __len__(self):
        return len(self.xy)

    def confmaps(self, i):
        y, x = self.xy[i, :, 0, None, None], self.xy[i, :, 1, None, None]
        d = (self.ax[None, :, None] - y) ** 2 + (self.ax[None, None, :] - x) ** 2
        return torch.exp(-d / 6.0)

    def __getitem__(self, i):
        c = self.confmaps(i)
        return self.noise[i] + c.max(0, keepdim=True).values, c
