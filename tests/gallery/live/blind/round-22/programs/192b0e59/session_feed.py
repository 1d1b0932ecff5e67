"""Session reader: a background thread keeps a few batches of id lists ready."""
import queue
import threading
import time

import torch

NUM_USERS = 512
# relative parse cost per day partition, in seconds for one batch
PARTITIONS = [
    ("ds=2026-03-01", 0.03), ("ds=2026-03-02", 0.02),
    ("ds=2026-03-03", 0.03), ("ds=2026-03-04", 0.02),
    ("ds=2026-03-05", 0.04), ("ds=2026-03-06", 0.34),
    ("ds=2026-03-07", 0.36), ("ds=2026-03-08", 0.03),
]
BATCHES_PER_PARTITION = 60


class SessionFeed:
    def __init__(self, rank, world_size, batch_size=16, depth=4):
        self.parts = PARTITIONS[rank::world_size]
        self.batch_size = batch_size
        self.gen = torch.Generator().manual_seed(1000 + rank)
        self.ready = queue.Queue(maxsize=depth)
        threading.Thread(target=self._fill, name="session-reader", daemon=True).start()

    def _parse(self, cost):
        time.sleep(cost)
        ids = torch.randint(0, NUM_USERS, (self.batch_size,), generator=self.gen)
        dense = torch.randn(self.batch_size, 8, generator=self.gen)
        label = (dense.sum(1) > 0).float()
        return ids, dense, label

    def _fill(self):
        while True:
            for _name, cost in self.parts:
                for _ in range(BATCHES_PER_PARTITION):
                    self.ready.put(self._parse(cost))

    def has_ready(self):
        return not self.ready.empty()

    def next(self):
        return self.ready.get()
