"""Per-sample loss history. The dataset reads it to choose how hard a sample is augmented."""
import lzma
import os
import threading

import numpy as np


class LossHistory:
    def __init__(self, n_samples, keep=64):
        # Rows start from a prior, so that samples not seen yet differ in difficulty.
        self.values = np.random.default_rng(0).exponential(0.7, (n_samples, keep))
        self.cursor = np.zeros(n_samples, dtype=np.int64)
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.path = None

    def start_writer(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path = path
        threading.Thread(target=self._writer, name="history-writer", daemon=True).start()

    def record(self, indices, losses):
        with self.lock:
            for i, v in zip(indices.tolist(), losses.tolist()):
                self.values[i, self.cursor[i] % self.values.shape[1]] = v
                self.cursor[i] += 1

    def difficulty(self, index):
        with self.lock:
            return float(self.values[index].mean())

    def save_later(self):
        if self.path:
            self.wake.set()

    def _writer(self):
        while True:
            self.wake.wait()
            self.wake.clear()
            with self.lock:
                blob = lzma.compress(self.values.tobytes(), preset=6)
                with open(self.path + ".tmp", "wb") as f:
                    f.write(blob)
                    f.flush()
                    os.fsync(f.fileno())
            os.replace(self.path + ".tmp", self.path)
