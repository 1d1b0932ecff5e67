import argparse
import tempfile
import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torchmetrics.classification import MulticlassAccuracy

from data import ShardedImages


class LitNet(L.LightningModule):
    def __init__(self, classes=10, c=28):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * c, 4 * c, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(4 * c, classes),
        )
        self.acc = MulticlassAccuracy(num_classes=classes)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.acc.update(self.net(x), y)

    def on_validation_epoch_end(self):
        self.log("val_acc", self.acc.compute())
        self.acc.reset()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 20)}


class Progress(Callback):
    def __init__(self, every=50):
        self.every = every
        self.t0 = time.time()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % self.every == 0:
            print(f"step {trainer.global_step} loss {outputs['loss'].item():.4f} "
                  f"{time.time() - self.t0:.1f}s", flush=True)
            self.t0 = time.time()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--base-url", required=True)
    p.add_argument("--devices", type=int, default=2)
    p.add_argument("--max-epochs", type=int, default=500)
    args = p.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(31, workers=True)
    trainer = L.Trainer(
        accelerator="cpu", devices=args.devices, max_epochs=args.max_epochs,
        strategy=DDPStrategy(process_group_backend="gloo"),
        val_check_interval=200, num_sanity_val_steps=0, enable_progress_bar=False, logger=False,
        use_distributed_sampler=False,
        callbacks=[ModelCheckpoint(dirpath=tempfile.mkdtemp(prefix="fit_"), every_n_train_steps=150), Progress()],
    )
    trainer.fit(LitNet(), datamodule=ShardedImages(args.base_url))


if __name__ == "__main__":
    main()
