import json
import os
import queue
import threading
import time

import lightning as L
import torch


class HostStats(L.Callback):
    """Samples the resident size of the process every few seconds."""

    def __init__(self, path, period=3.0):
        self.path, self.period = path, period
        self.stop = threading.Event()

    def _loop(self):
        while not self.stop.wait(self.period):
            with open("/proc/self/statm") as f:
                rss = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            with open(self.path, "a") as f:
                f.write(json.dumps({"t": time.time(), "rss": rss}) + "\n")

    def on_fit_start(self, trainer, module):
        self.thread = threading.Thread(target=self._loop, name="host-stats", daemon=True)
        self.thread.start()

    def on_fit_end(self, trainer, module):
        self.stop.set()


class AsyncWeights(L.Callback):
    """Rank 0 hands a copy of the weights to a writer thread after each validation."""

    def __init__(self, folder):
        self.folder = folder
        self.todo = queue.Queue(maxsize=4)

    def _write(self):
        while True:
            item = self.todo.get()
            if item is None:
                return
            epoch, state = item
            tmp = os.path.join(self.folder, "weights.tmp")
            torch.save(state, tmp)
            os.replace(tmp, os.path.join(self.folder, f"weights-{epoch % 3}.pt"))

    def on_fit_start(self, trainer, module):
        if trainer.is_global_zero:
            threading.Thread(target=self._write, name="weights-writer", daemon=True).start()

    def on_validation_epoch_end(self, trainer, module):
        if trainer.is_global_zero and not trainer.sanity_checking:
            self.todo.put((trainer.current_epoch, {k: v.clone() for k, v in module.state_dict().items()}))

    def on_fit_end(self, trainer, module):
        if trainer.is_global_zero:
            self.todo.put(None)


class Progress(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.is_global_zero and trainer.global_step % 25 == 0:
            print(f"epoch {trainer.current_epoch} step {trainer.global_step} loss {outputs['loss'].item():.5f}", flush=True)

    def on_validation_end(self, trainer, module):
        if trainer.is_global_zero:
            print("val " + " ".join(f"{k} {v:.4f}" for k, v in trainer.callback_metrics.items() if k.startswith("val")), flush=True)
