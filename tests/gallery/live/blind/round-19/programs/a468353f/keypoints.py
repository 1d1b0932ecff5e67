import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset

SIZE = 32
POINTS = 5


class Renders(Dataset):
    """Gaussian blobs drawn at random key points."""

    def __init__(self, n, seed, jitter):
        self.n, self.seed, self.jitter = n, seed, jitter
        grid = torch.arange(SIZE, dtype=torch.float32)
        self.yy, self.xx = torch.meshgrid(grid, grid, indexing="ij")

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
        pts = torch.rand(POINTS, 2, generator=g) * (SIZE - 8) + 4
        img = torch.zeros(POINTS, SIZE, SIZE)
        for k, (x, y) in enumerate(pts):
            img[k] = torch.exp(-((self.xx - x) ** 2 + (self.yy - y) ** 2) / (4 + k))
        img += self.jitter * torch.randn(img.shape, generator=g)
        return img, pts.flatten() / SIZE


class KeypointData(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Renders(6400, 0, 0.1), batch_size=16, shuffle=True, num_workers=1, drop_last=True)

    def val_dataloader(self):
        return DataLoader(Renders(1280, 1, 0.1), batch_size=16, num_workers=2)
