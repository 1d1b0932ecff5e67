import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import lightning as L
import torch


class BackgroundUpload(L.Callback):
    """Saves on rank 0 and copies the file to the archive folder in the background."""

    def __init__(self, local, archive, every=60):
        self.local, self.archive, self.every = local, archive, every
        self.pool, self.pending = None, []

    def on_fit_start(self, trainer, pl_module):
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="upload")

    def _copy(self, path):
        time.sleep(20)
        shutil.copy(path, self.archive)
        os.unlink(path)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step % self.every == 0 and trainer.is_global_zero:
            self.pending = [f for f in self.pending if not f.done()]
            path = os.path.join(self.local, f"step-{trainer.global_step}.pt")
            torch.save(pl_module.state_dict(), path)
            self.pending.append(self.pool.submit(self._copy, path))


class IdleWatch(L.Callback):
    """Logs the host load now and then; sleeps the rest of the time."""

    def on_fit_start(self, trainer, pl_module):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._loop, name="host-watch", daemon=True)
        self.thread.start()

    def _loop(self):
        while not self.stop.wait(300):
            print("load", os.getloadavg(), flush=True)

    def on_fit_end(self, trainer, pl_module):
        self.stop.set()
