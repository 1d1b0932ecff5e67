import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import torch
from lightning.pytorch.callbacks import Callback


class BackgroundCheckpoint(Callback):
    """Writes checkpoints off the training thread; every few of them go to the archive as well."""

    def __init__(self, folder, every_n_steps=25, archive_every=4):
        self.folder, self.every, self.archive_every = folder, every_n_steps, archive_every
        self.count = 0
        self.pending = None
        self.pool = None

    def setup(self, trainer, pl_module, stage):
        if trainer.is_global_zero:
            os.makedirs(os.path.join(self.folder, "archive"), exist_ok=True)
            self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ckpt-io")

    def _copy(self, src):
        return shutil.copy(src, os.path.join(self.folder, "archive"))

    def _write(self, state, step, archive):
        path = os.path.join(self.folder, f"step-{step:06d}.ckpt")
        torch.save(state, path)
        if archive:
            copies = [self.pool.submit(self._copy, p) for p in (path,)]
            for c in copies:
                c.result()
        return path

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if not trainer.is_global_zero or trainer.global_step % self.every:
            return
        if self.pending is not None:
            print("saved", os.path.basename(self.pending.result()), flush=True)
        self.count += 1
        state = {k: v.detach().clone() for k, v in pl_module.state_dict().items()}
        self.pending = self.pool.submit(self._write, state, trainer.global_step, self.count % self.archive_every == 0)
