import os

import lightning.pytorch as pl
import torch
import torchmetrics
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset

from plots import HistogramReport


class Signals(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.seed * 100003 + i)
        y = i % 5
        x = torch.sin(torch.linspace(0, 3 + 2 * y, 128)) + 0.4 * torch.randn(128, generator=gen)
        return x[None], y


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(128, 5))
        self.acc = torchmetrics.Accuracy(task="multiclass", num_classes=5)
        self.val_errors = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.body(x), y)
        if self.global_rank == 0 and self.global_step == 0:
            print("training begins", flush=True)
        if self.global_rank == 0 and self.global_step % 50 == 0:
            print(f"epoch {self.current_epoch} step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.body(x)
        self.acc(logits, y)
        self.log("val_acc", self.acc, on_epoch=True)
        self.val_errors += (1 - logits.softmax(-1).gather(1, y[:, None])).flatten().tolist()

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, 200)]


if __name__ == "__main__":
    torch.set_num_threads(1)
    pl.seed_everything(9)
    run_dir = os.environ["RUN_DIR"]
    kw = dict(batch_size=16, num_workers=1, persistent_workers=True)
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=5000, logger=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=run_dir,
        callbacks=[ModelCheckpoint(dirpath=run_dir, monitor="val_acc", mode="max", save_top_k=2, save_last=True),
                   HistogramReport(run_dir)])
    trainer.fit(Net(), DataLoader(Signals(3200, 0), shuffle=True, **kw), DataLoader(Signals(480, 1), **kw))
