import argparse
import tempfile

import lightning as L
import torch
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from data import DomainData
from model import DomainClassifier


class StepPrinter(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % 20 == 0:
            print(f"step {trainer.global_step} loss {outputs['loss'].item():.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--width", type=int, default=256)
    args = p.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(3)
    out = tempfile.gettempdir() + "/domains"
    trainer = L.Trainer(
        accelerator="cpu", devices=3, strategy="ddp", max_epochs=args.epochs,
        num_sanity_val_steps=0, enable_progress_bar=False, log_every_n_steps=10,
        logger=CSVLogger(out), enable_model_summary=False,
        callbacks=[StepPrinter(), LearningRateMonitor(), ModelCheckpoint(dirpath=out + "/ckpt", every_n_epochs=1)],
    )
    trainer.fit(DomainClassifier(args.width), datamodule=DomainData())


if __name__ == "__main__":
    main()
