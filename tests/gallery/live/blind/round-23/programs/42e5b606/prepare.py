import os
import threading
import time

import torch
from filelock import FileLock


class ChunkCache:
    """Prepares data chunks one process at a time (the preparation needs a lot of memory)."""

    def __init__(self, scratch, rank):
        self.scratch, self.rank = scratch, rank
        self.gate = FileLock(os.path.join(scratch, "prepare.lock"))

    def chunk(self, index):
        with self.gate:
            time.sleep(0.6 + 0.5 * ((index + self.rank) % 3))
            gen = torch.Generator().manual_seed(1000 * index + self.rank)
            data = torch.randn(512, 20, generator=gen)
        return data


class Heartbeat(threading.Thread):
    def __init__(self, path, period=20.0):
        super().__init__(name="heartbeat", daemon=True)
        self.path, self.period = path, period
        self.wake = threading.Condition()
        self.step = 0

    def run(self):
        while True:
            with self.wake:
                self.wake.wait(self.period)
            with open(self.path, "w") as f:
                f.write(f"{time.time():.0f} {self.step}\n")
