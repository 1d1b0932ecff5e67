import logging
import os
import queue
import threading

import numpy as np
from lightning.pytorch.callbacks import Callback

log = logging.getLogger(__name__)


class PredictionWriter:
    """Writes predicted masks from a thread of its own, so that validation need not wait for the disk."""

    def __init__(self, folder, maxsize=64):
        self.folder = folder
        self.tasks = queue.Queue(maxsize=maxsize)
        self.written = 0
        self.skipped = 0
        self.thread = threading.Thread(target=self._drain, name="prediction-writer", daemon=True)
        self.thread.start()

    def put(self, sample_id, mask, crowd):
        self.tasks.put((sample_id, mask, crowd))

    def _drain(self):
        while True:
            sample_id, mask, crowd = self.tasks.get()
            if crowd:
                self.skipped += 1
                continue
            try:
                np.save(os.path.join(self.folder, f"{sample_id:06d}.npy"), mask)
                self.written += 1
            except OSError as err:
                log.warning("could not write %s: %s", sample_id, err)
            finally:
                self.tasks.task_done()

    def flush(self):
        self.tasks.join()


class PredictionDumper(Callback):
    def __init__(self, folder):
        self.folder = folder
        self.writer = None

    def setup(self, trainer, pl_module, stage):
        folder = os.path.join(self.folder, f"rank{trainer.global_rank}")
        os.makedirs(folder, exist_ok=True)
        self.writer = PredictionWriter(folder)

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        for sample_id, mask, crowd in zip(batch["id"], outputs, batch["crowd"]):
            self.writer.put(int(sample_id), mask.numpy(), bool(crowd))

    def on_validation_epoch_end(self, trainer, pl_module):
        self.writer.flush()
        if trainer.is_global_zero:
            print(f"epoch {trainer.current_epoch}: {self.writer.written} masks on disk", flush=True)
