import tempfile
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy

from module import Forecaster, SensorData
from stopping import PlateauGuard


class LineLogger(Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % 10 == 0:
            print(f"epoch {trainer.current_epoch} step {trainer.global_step} mae {outputs['loss'].item():.4f}", flush=True)


def main():
    L.seed_everything(17)
    root = tempfile.mkdtemp(prefix="sensor_")
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=40)),
        max_epochs=400,
        default_root_dir=root,
        logger=False,
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[LineLogger(), PlateauGuard(goal=0.4), ModelCheckpoint(dirpath=root, monitor="val/mae", save_top_k=2)],
    )
    torch.set_num_threads(1)
    trainer.fit(Forecaster(), datamodule=SensorData())


if __name__ == "__main__":
    main()
