import torch
from torch.utils.data import Dataset


class CropDataset(Dataset):
    def __init__(self, n, side=32, classes=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, classes, (n,), generator=g)
        self.phase = torch.rand(n, generator=g)
        self.grid = torch.linspace(0, 3.1416, side)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        k = self.y[i] + 1
        wave = torch.sin(k * self.grid + self.phase[i])
        img = wave[:, None] * wave.roll(int(k))[None, :]
        img = img[None].repeat(3, 1, 1) + 0.3 * torch.randn(3, *img.shape)
        return {"name": f"field_{i:06d}.tif", "image": img, "label": self.y[i]}
