import argparse
import tempfile
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.strategies import DDPStrategy

from classifier import DefectClassifier
from datamodule import PartsDataModule


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=500)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(11)
    workdir = tempfile.mkdtemp(prefix="parts_")
    trainer = L.Trainer(
        accelerator="cpu",
        devices=args.devices,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=40)),
        max_epochs=args.epochs,
        enable_progress_bar=False,
        log_every_n_steps=20,
        logger=CSVLogger(workdir),
        callbacks=[ModelCheckpoint(dirpath=workdir, save_last=True, every_n_epochs=1)],
    )
    trainer.fit(DefectClassifier(), datamodule=PartsDataModule())


if __name__ == "__main__":
    main()
