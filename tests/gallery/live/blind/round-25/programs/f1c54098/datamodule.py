import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class PartsDataModule(L.LightningDataModule):
    def __init__(self, batch_size=16, in_dim=32, num_classes=6):
        super().__init__()
        self.batch_size, self.in_dim, self.num_classes = batch_size, in_dim, num_classes

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(3)
        w = torch.randn(self.in_dim, self.num_classes, generator=g)

        def make(n):
            x = torch.randn(n, self.in_dim, generator=g)
            return TensorDataset(x, (x @ w).argmax(-1))

        self.train_set, self.val_set = make(1280), make(256)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)
