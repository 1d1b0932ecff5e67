import argparse
import json
import os
import threading
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn

from datamodule import SegmentData


class Keyword(L.LightningModule):
    def __init__(self, n_mels=24, hidden=96, classes=8):
        super().__init__()
        self.rnn = nn.GRU(n_mels, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x, lengths):
        out, _ = self.rnn(x)
        last = out[torch.arange(len(x)), lengths - 1]
        return self.head(last)

    def training_step(self, batch, _):
        x, lengths, y = batch
        loss = nn.functional.cross_entropy(self(x, lengths), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        x, lengths, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self(x, lengths), y), sync_dist=True, batch_size=len(y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Heartbeat(L.Callback):
    """Writes progress for the dashboard every few seconds from a thread of its own."""

    def __init__(self, folder, every=5.0):
        self.folder, self.every = folder, every
        self.done = threading.Event()

    def on_train_start(self, trainer, pl_module):
        self.thread = threading.Thread(target=self._loop, args=(trainer,), name="heartbeat", daemon=True)
        self.thread.start()

    def _loop(self, trainer):
        os.makedirs(self.folder, exist_ok=True)
        while not self.done.wait(self.every):
            with open(os.path.join(self.folder, f"beat-{trainer.global_rank}.json"), "w") as f:
                json.dump({"step": trainer.global_step, "time": time.time()}, f)

    def on_train_end(self, trainer, pl_module):
        self.done.set()
        self.thread.join()


class Progress(L.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % 25 == 0:
            print(f"step {trainer.global_step} loss {outputs['loss'].item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--work-dir", default="runs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(3)
    trainer = L.Trainer(
        accelerator="cpu", devices=args.devices, strategy="ddp", max_steps=200_000, max_epochs=-1,
        val_check_interval=150, check_val_every_n_epoch=None, log_every_n_steps=20,
        enable_progress_bar=False, enable_model_summary=False,
        logger=CSVLogger(args.work_dir, name="csv"),
        callbacks=[
            ModelCheckpoint(dirpath=os.path.join(args.work_dir, "ckpt"), monitor="val_loss", save_top_k=2, save_last=True),
            Heartbeat(args.work_dir),
            Progress(),
        ],
    )
    trainer.fit(Keyword(), datamodule=SegmentData())


if __name__ == "__main__":
    main()
