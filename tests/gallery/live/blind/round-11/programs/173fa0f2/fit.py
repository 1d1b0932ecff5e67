import tempfile
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy

from datamodule import CaptionData
from module import Captioner

if __name__ == "__main__":
    torch.set_num_threads(1)
    L.seed_everything(3)
    trainer = L.Trainer(
        accelerator="cpu", devices=3, max_epochs=50, num_sanity_val_steps=0, check_val_every_n_epoch=2,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(hours=2)),
        use_distributed_sampler=False, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, default_root_dir=tempfile.mkdtemp(prefix="caption-"))
    trainer.fit(Captioner(), datamodule=CaptionData())
