"""Metrics leave the training process through a queue; a helper process keeps the table."""
import queue
import threading
import time

import torch.multiprocessing as mp
from lightning.pytorch.callbacks import Callback


def _collector(inbox):
    rows = []
    while True:
        item = inbox.get()
        if item is None:
            return
        rows.append(item)
        if len(rows) > 500:
            del rows[:250]


class MetricSink(Callback):
    def __init__(self):
        self.local = queue.Queue()
        self.outbox = None

    def setup(self, trainer, pl_module, stage):
        if self.outbox is not None:
            return
        ctx = mp.get_context("spawn")
        self.outbox = ctx.Queue()
        ctx.Process(target=_collector, args=(self.outbox,), daemon=True).start()
        threading.Thread(target=self._pump, name="metric-pump", daemon=True).start()

    def _pump(self):
        while True:
            self.outbox.put(self.local.get())

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if batch_idx % 10 == 0:
            self.local.put((trainer.global_rank, trainer.global_step, float(outputs["loss"]), time.time()))
            if trainer.is_global_zero:
                print(f"epoch {trainer.current_epoch} batch {batch_idx} loss {float(outputs['loss']):.4f}", flush=True)
