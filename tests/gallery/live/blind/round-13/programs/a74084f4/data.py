import torch
from lightning import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class SensorData(LightningDataModule):
    def __init__(self, n=4096, dim=64, classes=6, batch_size=16):
        super().__init__()
        self.n, self.dim, self.classes, self.batch_size = n, dim, classes, batch_size

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(7)
        w = torch.randn(self.dim, self.classes, generator=g)
        x = torch.randn(self.n, self.dim, generator=g)
        y = (x @ w + 0.5 * torch.randn(self.n, self.classes, generator=g)).argmax(1)
        cut = int(0.9 * self.n)
        self.train = TensorDataset(x[:cut], y[:cut])
        self.val = TensorDataset(x[cut:], y[cut:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)
