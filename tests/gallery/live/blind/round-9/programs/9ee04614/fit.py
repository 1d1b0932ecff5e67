import argparse
import os

import lightning as L
import torch

from artifacts import ArtifactSync
from data import SpectraModule
from model import DenoisingAE


class StepLog(L.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % 20 == 0:
            print(f"epoch {trainer.current_epoch} step {trainer.global_step} mse {float(outputs['loss']):.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=3)
    p.add_argument("--run-dir", required=True)
    p.add_argument("--epochs", type=int, default=200)
    args = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(7)
    run_dir = os.environ.get("RUN_DIR", args.run_dir)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=args.devices,
        strategy="ddp",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=run_dir,
        callbacks=[StepLog(), ArtifactSync(run_dir, os.path.join(run_dir, "bucket"))],
    )
    trainer.fit(DenoisingAE(), datamodule=SpectraModule())


if __name__ == "__main__":
    main()
