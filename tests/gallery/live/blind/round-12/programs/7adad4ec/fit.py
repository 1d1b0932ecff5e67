import os

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from saver import BackgroundCheckpoint


class Forecaster(pl.LightningModule):
    def __init__(self, dim=48):
        super().__init__()
        self.rnn = nn.GRU(4, dim, batch_first=True)
        self.head = nn.Linear(dim, 4)

    def training_step(self, batch, batch_idx):
        (x,) = batch
        pred = self.head(self.rnn(x[:, :-1])[0])
        loss = nn.functional.mse_loss(pred, x[:, 1:])
        if batch_idx == 0 and self.current_epoch == 0 and self.global_rank == 0:
            print("training begins", flush=True)
        if self.global_step % 20 == 0 and self.global_rank == 0:
            print(f"epoch {self.current_epoch} step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def series(n=2400, length=24):
    t = torch.arange(length).float()[None, :, None] + torch.rand(n, 1, 4) * 20
    return torch.sin(t * torch.rand(n, 1, 4)) + 0.05 * torch.randn(n, length, 4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    pl.seed_everything(5)
    loader = DataLoader(TensorDataset(series()), batch_size=12, shuffle=True, drop_last=True)
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=400, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[BackgroundCheckpoint(os.environ["RUN_DIR"])])
    trainer.fit(Forecaster(), loader)
