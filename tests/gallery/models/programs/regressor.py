"""A regression of tabular rows as a LightningModule, with BatchNorm and a metric that is logged."""

import lightning as L
import torch
from torch import nn


class Regressor(L.LightningModule):
    def __init__(self, features=10, width=32, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def make(width=32):
    return Regressor(width=width)


def sample(rows=8):
    x = torch.randn(rows, 10)
    return x, x.sum(dim=1)
