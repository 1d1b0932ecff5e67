import argparse
import os

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import MulticlassAccuracy

from archive import ArchiveCheckpoint, StopFile


class Signals(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.seeds = torch.randint(1 << 30, (n,), generator=g)

    def __len__(self):
        return len(self.seeds)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(int(self.seeds[i]))
        label = int(torch.randint(6, (1,), generator=g))
        length = int(torch.randint(96, 160, (1,), generator=g))
        x = torch.randn(8, length, generator=g)
        x[label] += 0.6
        return x, label


def pad(batch):
    width = max(x.shape[1] for x, _ in batch)
    xs = torch.stack([F.pad(x, (0, width - x.shape[1])) for x, _ in batch])
    return xs, torch.tensor([y for _, y in batch])


class SignalNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(8, 48, 7, padding=3), nn.BatchNorm1d(48), nn.ReLU(),
            nn.Conv1d(48, 64, 5, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 6))
        self.acc = MulticlassAccuracy(6)

    def training_step(self, batch, i):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, i):
        x, y = batch
        logits = self.net(x)
        self.acc.update(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y), sync_dist=True)
        self.log("val_acc", self.acc, on_epoch=True)

    def on_validation_epoch_end(self):
        self.print(f"step {self.global_step} val_loss {float(self.trainer.callback_metrics.get('val_loss', 0)):.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    a = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(4, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=400, val_check_interval=100,
        num_sanity_val_steps=1, enable_progress_bar=False, logger=False, default_root_dir=a.out,
        callbacks=[ModelCheckpoint(dirpath=a.out, monitor="val_loss", save_top_k=1, save_last=True),
                   ArchiveCheckpoint(a.out), StopFile(os.path.join(a.out, "STOP"))])
    train = DataLoader(Signals(9600, 1), batch_size=8, shuffle=True, collate_fn=pad, num_workers=1, persistent_workers=True)
    val = DataLoader(Signals(322, 2), batch_size=16, collate_fn=pad)
    trainer.fit(SignalNet(), train, val)


if __name__ == "__main__":
    main()
