import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Signals(L.LightningDataModule):
    def __init__(self, classes=8, length=128, batch_size=16):
        super().__init__()
        self.classes, self.length, self.batch_size = classes, length, batch_size

    def _make(self, n, seed, rare):
        g = torch.Generator().manual_seed(seed)
        y = torch.randint(0, self.classes - 1, (n,), generator=g)
        y[torch.randperm(n, generator=g)[:rare]] = self.classes - 1
        x = torch.randn(n, 4, self.length, generator=g) + y.view(-1, 1, 1) * 0.2
        return TensorDataset(x, y)

    def setup(self, stage=None):
        self.train_set = self._make(4096, 0, 60)
        self.val_set = self._make(512, 4, 1)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)
