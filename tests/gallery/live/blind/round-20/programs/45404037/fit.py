import argparse
import os

import torch
import lightning as L

from callbacks import BestWeights, Speed
from data import ScannerData
from model import Regressor


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=3)
    p.add_argument("--epochs", type=int, default=40)
    args = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(3)
    out = os.environ["RUN_DIR"]
    trainer = L.Trainer(
        accelerator="cpu",
        devices=args.devices,
        strategy="ddp",
        max_epochs=args.epochs,
        val_check_interval=20,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        default_root_dir=out,
        callbacks=[Speed(), BestWeights(out)],
    )
    trainer.fit(Regressor(), datamodule=ScannerData())


if __name__ == "__main__":
    main()
