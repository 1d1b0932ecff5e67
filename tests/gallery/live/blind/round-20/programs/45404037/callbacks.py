import os
import time

import lightning as L


class BestWeights(L.Callback):
    """Keeps best.ckpt for the lowest value of `monitor`."""

    def __init__(self, dirpath, monitor="val_loss"):
        self.dirpath = dirpath
        self.monitor = monitor
        self.best = float("inf")

    def on_validation_end(self, trainer, module):
        if trainer.sanity_checking:
            return
        value = trainer.callback_metrics[self.monitor].item()
        if value < self.best:
            self.best = value
            trainer.save_checkpoint(os.path.join(self.dirpath, "best.ckpt"))


class Speed(L.Callback):
    def __init__(self, every=20):
        self.every = every
        self.t = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % self.every == 0 and trainer.is_global_zero:
            now = time.perf_counter()
            print(f"epoch {trainer.current_epoch} step {trainer.global_step} "
                  f"loss {outputs['loss'].item():.4f} {self.every / (now - self.t):.1f} it/s", flush=True)
            self.t = now

    def on_validation_end(self, trainer, module):
        if trainer.is_global_zero:
            print(f"validation at step {trainer.global_step}: {trainer.callback_metrics['val_loss'].item():.4f}",
                  flush=True)
