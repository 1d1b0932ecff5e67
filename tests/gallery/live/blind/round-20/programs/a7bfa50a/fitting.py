import argparse

import lightning as L
import torch
from torch.utils.data import DataLoader

from net import RhythmNet
from signals import Recordings


class EpochLog(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.is_global_zero and batch_idx % 4 == 0:
            print(f"epoch {trainer.current_epoch} batch {batch_idx} loss {outputs['loss'].item():.4f}", flush=True)

    def on_train_epoch_end(self, trainer, module):
        if trainer.is_global_zero:
            print(f"epoch {trainer.current_epoch} done, lr {trainer.optimizers[0].param_groups[0]['lr']:.3f}",
                  flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=500)
    p.add_argument("--workers", type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(0)
    loader = DataLoader(
        Recordings(),
        batch_size=12,
        shuffle=True,
        num_workers=args.workers,
        multiprocessing_context="spawn",
        persistent_workers=False,
    )
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[EpochLog()],
    )
    trainer.fit(RhythmNet(), loader)
