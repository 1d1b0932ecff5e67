import argparse
import os
import time

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy

from datamodule import SceneData
from module import GroupingModule


class Progress(L.Callback):
    def __init__(self):
        self.start = time.time()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % 10 == 0:
            print(f"[{time.time() - self.start:6.1f}s] epoch {trainer.current_epoch} "
                  f"step {trainer.global_step} loss {outputs['loss'].item():.4f}", flush=True)

    def on_validation_end(self, trainer, pl_module):
        if trainer.is_global_zero and not trainer.sanity_checking:
            shown = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items() if k.startswith("val/")}
            print(f"validation {shown}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--max-epochs", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(11, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu", devices=args.devices, max_epochs=args.max_epochs,
        strategy=DDPStrategy(process_group_backend="gloo"),
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0,
        default_root_dir=os.environ.get("TMPDIR", "/tmp"), callbacks=[Progress()],
    )
    trainer.fit(GroupingModule(), SceneData())


if __name__ == "__main__":
    main()
