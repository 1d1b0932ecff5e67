import argparse

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from tracking.client import TrackerLogger


class Forecaster(L.LightningModule):
    def __init__(self, hidden=64, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])

    def training_step(self, batch, _):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val/mae", (self(x) - y).abs().mean(), sync_dist=True, prog_bar=True)

    def on_train_epoch_end(self):
        metrics = self.trainer.callback_metrics
        self.print(f"epoch {self.current_epoch} step {self.global_step} val/mae {float(metrics.get('val/mae', 0)):.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def series(n, seed):
    gen = torch.Generator().manual_seed(seed)
    phase, freq = torch.rand(n, 1, generator=gen) * 6.28, 0.1 + torch.rand(n, 1, generator=gen) * 0.4
    wave = torch.sin(phase + freq * torch.arange(33)) + 0.05 * torch.randn(n, 33, generator=gen)
    return TensorDataset(wave[:, :32, None], wave[:, 32:])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tracker", required=True)
    ap.add_argument("--devices", type=int, default=3)
    args = ap.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(3)
    trainer = L.Trainer(
        accelerator="cpu", devices=args.devices, strategy="ddp", max_epochs=500,
        logger=TrackerLogger(args.tracker, "forecast-base"), log_every_n_steps=4,
        enable_progress_bar=False, enable_checkpointing=False, default_root_dir=".lightning",
    )
    trainer.fit(Forecaster(), DataLoader(series(1920, 0), batch_size=16, shuffle=True), DataLoader(series(240, 1), batch_size=32))


if __name__ == "__main__":
    main()
