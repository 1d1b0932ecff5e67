import argparse
import tempfile
import time
import warnings

import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from rest_logger import RestLogger

warnings.filterwarnings("ignore")


class Regressor(pl.LightningModule):
    def __init__(self, dim=24, hidden=64):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                 nn.Linear(hidden, 1))

    def training_step(self, batch, idx):
        x, y = batch
        time.sleep(0.15)
        loss = F.mse_loss(self.net(x).squeeze(-1), y)
        self.log("train_loss", loss)
        self.log("train_mae", (self.net(x).squeeze(-1) - y).abs().mean())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Speed(pl.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.is_global_zero and (trainer.global_step % 5 == 0):
            print(f"{time.strftime('%X')} global_step {trainer.global_step} loss {outputs['loss'].item():.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=3)
    args = p.parse_args()
    pl.seed_everything(5)
    torch.set_num_threads(1)
    x = torch.randn(40000, 24)
    y = x[:, :4].sum(1) + 0.1 * torch.randn(40000)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    trainer = pl.Trainer(accelerator="cpu", devices=args.devices, strategy="ddp", max_epochs=50,
                         logger=RestLogger("tabular-reg"), log_every_n_steps=1, callbacks=[Speed()],
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                         default_root_dir=tempfile.mkdtemp())
    trainer.fit(Regressor(), loader)


if __name__ == "__main__":
    main()
