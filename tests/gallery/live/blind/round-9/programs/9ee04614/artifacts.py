import os
import subprocess
import sys
import time

import lightning as L
from lightning.pytorch.utilities import rank_zero_info

SYNC_TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools", "sync.py")


class ArtifactSync(L.Callback):
    def __init__(self, run_dir, bucket, every_n_steps=60):
        self.run_dir = run_dir
        self.bucket = bucket
        self.every_n_steps = every_n_steps
        self.proc = None

    def _finish_previous(self):
        if self.proc is None:
            return
        rc = self.proc.wait()
        if rc != 0:
            tail = self.proc.stdout.read()[-2000:]
            rank_zero_info(f"artifact sync exited with {rc}: {tail}")
        self.proc = None

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step == 0 or step % self.every_n_steps:
            return
        path = os.path.join(self.run_dir, "checkpoints", f"step={step:06d}.ckpt")
        trainer.save_checkpoint(path)
        if not trainer.is_global_zero:
            return
        self._finish_previous()
        t = time.strftime("%H:%M:%S")
        rank_zero_info(f"[{t}] step {step}: saved {os.path.basename(path)}, syncing to {self.bucket}")
        self.proc = subprocess.Popen(
            [sys.executable, SYNC_TOOL, "--verbose", os.path.join(self.run_dir, "checkpoints"), self.bucket],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def on_train_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            self._finish_previous()
