import os
import queue
import threading
import time

import torch


class CheckpointWriter(threading.Thread):
    """Serialises state dicts handed over by the main thread."""

    def __init__(self, folder, keep=3):
        super().__init__(name="ckpt-writer", daemon=True)
        self.folder, self.keep = folder, keep
        self.tasks = queue.Queue(maxsize=2)
        self.written = []

    def submit(self, step, state):
        self.tasks.put((step, {k: v.detach().clone() for k, v in state.items()}))

    def run(self):
        while True:
            step, state = self.tasks.get()
            path = os.path.join(self.folder, f"model_{step}.pt")
            torch.save(state, path + ".tmp")
            os.replace(path + ".tmp", path)
            self.written.append(path)
            while len(self.written) > self.keep:
                os.unlink(self.written.pop(0))


class StopFileWatcher(threading.Thread):
    def __init__(self, path, interval=5.0):
        super().__init__(name="stop-watcher", daemon=True)
        self.path, self.interval = path, interval
        self.requested = False

    def run(self):
        while not self.requested:
            self.requested = os.path.exists(self.path)
            time.sleep(self.interval)
