import torch
import lightning as L
from torch.utils.data import DataLoader, TensorDataset


def volume(n, dim, weight, gen, noise=0.05):
    x = torch.randn(n, dim, generator=gen)
    y = torch.tanh(x @ weight) + noise * torch.randn(n, weight.size(1), generator=gen)
    return x, y


class ScannerData(L.LightningDataModule):
    """Training scans come from scanner B; validation covers the scanners A, B, C in turn."""

    def __init__(self, dim=96, targets=8, batch_size=32, train_size=7680, val_size=576):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        hp = self.hparams
        gen = torch.Generator().manual_seed(17)
        base = torch.randn(hp.dim, hp.targets, generator=gen) / hp.dim ** 0.5
        response = {"A": -0.8 * base, "B": base, "C": -0.6 * base}
        self.train_set = TensorDataset(*volume(hp.train_size, hp.dim, response["B"], gen))
        parts = [volume(hp.val_size // 3, hp.dim, response[k], gen) for k in "ABC"]
        x = torch.stack([p[0] for p in parts], 1).flatten(0, 1)
        y = torch.stack([p[1] for p in parts], 1).flatten(0, 1)
        self.val_set = TensorDataset(x, y)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.hparams.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.hparams.batch_size)
