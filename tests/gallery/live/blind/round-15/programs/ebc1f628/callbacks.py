import os
import time

import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_info


class Throughput(pl.Callback):
    def __init__(self, every=25):
        self.every, self.t0 = every, None

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx % self.every == 0:
            now = time.time()
            if self.t0 is not None:
                rank_zero_info(f"epoch {trainer.current_epoch} batch {batch_idx} "
                               f"loss {outputs['loss'].item():.4f} {self.every / (now - self.t0):.1f} it/s")
            self.t0 = now


class KeepProgress(pl.Callback):
    """Leaves a checkpoint behind when a run ends early."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "interrupted.ckpt")

    def on_exception(self, trainer, module, exception):
        print(f"[rank {trainer.global_rank}] {type(exception).__name__}: {exception}; writing {self.path}", flush=True)
        trainer.save_checkpoint(self.path)
