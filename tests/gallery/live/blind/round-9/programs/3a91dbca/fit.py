import argparse
import time

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch import nn

from data import SeriesData


class Forecaster(pl.LightningModule):
    def __init__(self, length=96, horizon=12, width=128, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.rnn = nn.LSTM(1, width, batch_first=True)
        self.head = nn.Linear(width, horizon)

    def forward(self, x):
        h, _ = self.rnn(x.unsqueeze(-1))
        return self.head(h[:, -1])

    def training_step(self, batch, _):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", F.mse_loss(self(x), y), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class EpochLog(Callback):
    def on_train_epoch_start(self, trainer, module):
        self.t0 = time.time()

    def on_train_epoch_end(self, trainer, module):
        if trainer.is_global_zero:
            m = trainer.callback_metrics
            print(
                f"epoch {trainer.current_epoch} loss {m['loss']:.4f} val {m['val_loss']:.4f} "
                f"steps {trainer.num_training_batches} time {time.time() - self.t0:.1f}s",
                flush=True,
            )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=2)
    p.add_argument("--max-epochs", type=int, default=100)
    p.add_argument("--workers", type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(1, verbose=False)
    trainer = pl.Trainer(
        accelerator="cpu", devices=args.devices, strategy="ddp", max_epochs=args.max_epochs,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, callbacks=[EpochLog()],
    )
    trainer.fit(Forecaster(), datamodule=SeriesData(num_workers=args.workers))


if __name__ == "__main__":
    main()
