import os
import time
import warnings
from datetime import timedelta

import lightning as L
import torch
import torch.nn as nn
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from collector_logger import CollectorLogger, start_service

warnings.filterwarnings("ignore")


class Sensors(Dataset):
    def __len__(self):
        return 40_000

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        x = torch.randn(24, generator=gen)
        return x, (x[:4].sum() > 0).long()


class Detector(L.LightningModule):
    def __init__(self, hidden=64, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(24, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def training_step(self, batch, batch_idx):
        x, y = batch
        time.sleep(0.12)
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train/loss", loss)
        if self.trainer.is_global_zero and batch_idx % 10 == 0:
            print(f"batch {batch_idx} loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "COLLECTOR_PORT" not in os.environ:
        os.environ["COLLECTOR_PORT"] = str(start_service())
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(hours=1)),
        max_epochs=50,
        logger=CollectorLogger("sensors", int(os.environ["COLLECTOR_PORT"])),
        log_every_n_steps=2,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Detector(), DataLoader(Sensors(), batch_size=16, shuffle=True))
