import tempfile
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from callbacks import BackgroundUpload, IdleWatch
from forecaster import Forecaster, LoadCurves


def loader(n, seed, shuffle):
    return DataLoader(LoadCurves(n, seed=seed), batch_size=8, shuffle=shuffle, num_workers=1, persistent_workers=True)


def main():
    torch.set_num_threads(1)
    L.seed_everything(4)
    local, archive = tempfile.mkdtemp(prefix="ckpt_"), tempfile.mkdtemp(prefix="archive_")
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(start_method="spawn", process_group_backend="gloo", timeout=timedelta(minutes=30)),
        max_epochs=1000,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[BackgroundUpload(local, archive), IdleWatch()],
    )
    trainer.fit(Forecaster(), loader(2400, 1, True), loader(1280, 2, False))


if __name__ == "__main__":
    main()
