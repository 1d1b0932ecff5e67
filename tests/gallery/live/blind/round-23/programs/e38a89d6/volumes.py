import numpy as np
import torch


class VolumeFolder:
    """Synthetic stand-in for a folder of scans from two sites."""

    def __init__(self, n, size, seed):
        rng = np.random.default_rng(seed)
        self.size = size
        self.sites = rng.choice(["siteA", "siteB"], n)
        self.depths = np.where(self.sites == "siteA", 8, 12)
        if seed % 3 == 2:
            self.depths[70] = 10
        self.seed = seed

    def __len__(self):
        return len(self.depths)

    def load(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        vol = torch.randn(1, int(self.depths[i]), self.size, self.size, generator=g)
        mask = (vol > 0.7).float()
        return vol, mask


def iterate(folder, rank, seed, epochs=1000):
    for epoch in range(epochs):
        for i in range(len(folder)):
            vol, mask = folder.load(i)
            yield {"volume": vol.unsqueeze(0), "mask": mask.unsqueeze(0), "id": f"{rank}/{epoch}/{i}"}
