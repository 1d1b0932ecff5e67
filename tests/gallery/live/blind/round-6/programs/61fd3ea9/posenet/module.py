import time

import lightning as L
import torch
from torch import nn


class ConfmapModule(L.LightningModule):
    def __init__(self, parts=3, width=16, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2), nn.ReLU(),
            nn.Conv2d(width, width, 5, padding=2), nn.ReLU(),
            nn.Conv2d(width, parts, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, i):
        x, c = batch
        loss = (self(x) - c).square().mean()
        time.sleep(0.06)
        if i % 10 == 0 and self.global_rank == 0:
            print(f"epoch {self.current_epoch} batch {i} loss {loss.item():.5f}", flush=True)
        return loss

    def validation_step(self, batch, i):
        x, c = batch
        self.log("val_loss", (self(x) - c).square().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.hparams.lr)
