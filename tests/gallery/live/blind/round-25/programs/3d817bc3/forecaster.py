import time

import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import Dataset


class LoadCurves(Dataset):
    def __init__(self, n, length=36, seed=0):
        self.n, self.length, self.seed = n, length, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        t = torch.arange(self.length + 6) / 6.0
        y = torch.sin(t + 6.28 * torch.rand(1, generator=g)) + 0.05 * torch.randn(len(t), generator=g)
        return y[: self.length], y[self.length :]


class Forecaster(L.LightningModule):
    def __init__(self, length=36, horizon=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(length, 64), nn.GELU(), nn.Linear(64, horizon))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        time.sleep(0.15)
        if self.global_step % 10 == 0 and self.trainer.is_global_zero:
            print(f"step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        members = torch.stack([self.net(x + 0.02 * torch.randn_like(x)) for _ in range(20)])
        time.sleep(0.3)
        self.log("val_mae", (members.mean(0) - y).abs().mean(), on_epoch=True, sync_dist=True)
        if batch_idx % 20 == 0 and self.trainer.is_global_zero:
            print(f"validation {batch_idx}", flush=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
