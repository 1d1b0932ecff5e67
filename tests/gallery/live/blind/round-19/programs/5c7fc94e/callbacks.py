import gc
import queue
import threading
import time
from datetime import timedelta

import torch.distributed as dist
from lightning.pytorch.callbacks import Callback


class CollectGarbage(Callback):
    def __init__(self, every=50):
        self.every = every

    def on_train_start(self, trainer, module):
        gc.disable()
        gc.collect()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % self.every == 0:
            gc.collect(1)


class CheckAllRanks(Callback):
    def on_validation_epoch_end(self, trainer, module):
        if not trainer.sanity_checking:
            dist.monitored_barrier(timeout=timedelta(minutes=20), wait_all_ranks=True)


class AsyncLog(Callback):
    def __init__(self):
        self.rows = queue.Queue()
        self.thread = None

    def on_train_start(self, trainer, module):
        self.t0 = time.time()
        self.thread = threading.Thread(target=self._drain, name="log-writer", daemon=True)
        self.thread.start()

    def _drain(self):
        while True:
            row = self.rows.get()
            if row is None:
                return
            print("[rank {} | {:7.1f}s] step {} {}".format(*row), flush=True)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % 40 == 0:
            self.rows.put((trainer.global_rank, time.time() - self.t0, trainer.global_step, f"loss {float(outputs['loss']):.4f}"))

    def on_validation_epoch_end(self, trainer, module):
        v = trainer.callback_metrics.get("val_f1")
        if v is not None and not trainer.sanity_checking and trainer.is_global_zero:
            self.rows.put((0, time.time() - self.t0, trainer.global_step, f"val_f1 {float(v):.4f}"))

    def on_train_end(self, trainer, module):
        self.rows.put(None)
        self.thread.join()
