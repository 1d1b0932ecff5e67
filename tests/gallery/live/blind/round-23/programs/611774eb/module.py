import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Sliding windows over a synthetic sensor signal."""

    def __init__(self, n, offset, length=96, horizon=12):
        t = torch.arange(n + length + horizon + offset, dtype=torch.float32)
        g = torch.Generator().manual_seed(offset)
        self.signal = torch.sin(t / 9) + 0.4 * torch.sin(t / 2.3) + 0.1 * torch.randn(len(t), generator=g)
        self.n, self.length, self.horizon, self.offset = n, length, horizon, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = i + self.offset
        return self.signal[s : s + self.length], self.signal[s + self.length : s + self.length + self.horizon]


class SensorData(L.LightningDataModule):
    def __init__(self, batch_size=8):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(Windows(720, 0), batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(Windows(96, 5000), batch_size=self.batch_size)


class Forecaster(L.LightningModule):
    def __init__(self, length=96, horizon=12, width=64, lr=4e-4):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(length, width), nn.GELU(), nn.Linear(width, horizon))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.l1_loss(self(x), y)
        self.log("train/mae", loss)
        time.sleep(0.15)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val/mae", nn.functional.l1_loss(self(x), y), sync_dist=True)
        time.sleep(0.05)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
