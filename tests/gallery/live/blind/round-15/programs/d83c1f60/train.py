import argparse
import os
import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from tracking import AsyncTrackingLogger


class SpectrogramData(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed
        g = torch.Generator().manual_seed(99)
        self.proto = torch.randn(8, 1, 32, 48, generator=g)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        y = i % 8
        return self.proto[y] + 1.5 * torch.randn(1, 32, 48, generator=g), y


class KeywordNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 8))
        self.began = time.time()

    def training_step(self, batch, idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train/loss", loss)
        if self.global_rank == 0 and self.global_step % 25 == 0:
            print(f"[{time.time() - self.began:6.1f}s] epoch {self.current_epoch} step {self.global_step} "
                  f"loss {loss.item():.4f} sent {self.logger.stored}", flush=True)
        return loss

    def validation_step(self, batch, idx):
        x, y = batch
        logits = self.net(x)
        self.log("val/loss", F.cross_entropy(logits, y), sync_dist=True)
        self.log("val/acc", (logits.argmax(1) == y).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracking-uri", required=True)
    parser.add_argument("--root", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(5, workers=True, verbose=False)
    train = DataLoader(SpectrogramData(6400, 1), 32, shuffle=True, num_workers=1, persistent_workers=True,
                       prefetch_factor=4)
    val = DataLoader(SpectrogramData(640, 2), 32)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, max_epochs=10000, strategy=DDPStrategy(process_group_backend="gloo"),
        logger=AsyncTrackingLogger(args.tracking_uri), log_every_n_steps=1, default_root_dir=args.root,
        callbacks=[ModelCheckpoint(os.path.join(args.root, "ckpt"), monitor="val/loss", save_top_k=2)],
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=1)
    trainer.fit(KeywordNet(), train, val)


if __name__ == "__main__":
    main()
