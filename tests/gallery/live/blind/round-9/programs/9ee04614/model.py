import lightning as L
import torch
from torch import nn
import torch.nn.functional as F


class DenoisingAE(L.LightningModule):
    def __init__(self, width=256, hidden=384, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 64)
        )
        self.decoder = nn.Sequential(
            nn.Linear(64, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, width)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        clean, noisy = batch
        loss = F.mse_loss(self(noisy), clean)
        self.log("train/mse", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, batch_idx):
        clean, noisy = batch
        self.log("val/mse", F.mse_loss(self(noisy), clean), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
