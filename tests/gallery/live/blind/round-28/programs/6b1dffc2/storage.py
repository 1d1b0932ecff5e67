import os
import queue
import shutil
import threading
import time

import torch


class Uploader:
    """Copies finished checkpoints to the slow tier, one at a time, in the background."""

    def __init__(self, target, seconds_per_file=9.0):
        self.target, self.seconds = target, seconds_per_file
        self.jobs = queue.Queue()
        threading.Thread(target=self._run, name="uploader", daemon=True).start()

    def submit(self, path):
        self.jobs.put(path)

    def _run(self):
        while True:
            path = self.jobs.get()
            time.sleep(self.seconds)
            shutil.copy(path, self.target)
            os.remove(path)


def write_checkpoint(model, optimizer, path, chunk_pause=0.3):
    """Streams the tensors one by one to a throttled disk."""
    tmp = path + ".tmp"
    with open(tmp, "wb") as f:
        for name, tensor in model.state_dict().items():
            torch.save((name, tensor.cpu()), f)
            f.flush()
            time.sleep(chunk_pause)
        torch.save(optimizer.state_dict(), f)
    os.replace(tmp, path)
    return path
