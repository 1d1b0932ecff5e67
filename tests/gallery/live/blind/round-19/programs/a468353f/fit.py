import argparse
import os

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torchmetrics import MeanAbsoluteError, MetricCollection, R2Score

from callbacks import AsyncWeights, HostStats, Progress
from keypoints import POINTS, KeypointData


class KeypointNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(POINTS, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 64, 128), nn.ReLU(), nn.Linear(128, POINTS * 2),
        )
        self.metrics = MetricCollection({"mae": MeanAbsoluteError(), "r2": R2Score()}, prefix="val/")

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        pred = self.net(x)
        self.metrics.update(pred.flatten(), y.flatten())
        self.log("val/loss", nn.functional.mse_loss(pred, y), sync_dist=True)

    def on_validation_epoch_end(self):
        self.log_dict(self.metrics.compute())
        self.metrics.reset()

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 400)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=2)
    p.add_argument("--epochs", type=int, default=100)
    args = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(1)
    run_dir = os.environ["RUN_DIR"]
    stats = os.path.join(run_dir, f"host-{os.environ.get('LOCAL_RANK', '0')}.jsonl")
    trainer = L.Trainer(
        accelerator="cpu", devices=args.devices, strategy="ddp", max_epochs=args.epochs, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=2,
        callbacks=[HostStats(stats), AsyncWeights(run_dir), Progress(), EarlyStopping("val/mae", patience=400, mode="min")],
    )
    trainer.fit(KeypointNet(), datamodule=KeypointData())


if __name__ == "__main__":
    main()
