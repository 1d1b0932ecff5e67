import queue
import threading
import time

import numpy as np
import torch


class ShardFeed:
    """Fetches shards in the background and hands out batches from the ones at hand."""

    def __init__(self, rank, world, shard_rows=512, batch=16, ahead=3):
        self.rank, self.world, self.rows, self.batch = rank, world, shard_rows, batch
        self.ready = queue.Queue(maxsize=ahead)
        self.thread = threading.Thread(target=self._fetch, name="shard-fetch", daemon=True)
        self.thread.start()

    def _fetch(self):
        number = self.rank
        while True:
            time.sleep(0.4 + 0.3 * ((number * 7) % 5) / 5)
            rng = np.random.default_rng(number)
            keep = int(self.rows * rng.uniform(0.85, 1.0))
            self.ready.put(torch.from_numpy(np.cumsum(rng.integers(0, 4, size=(keep, 33)), axis=1) % 256))
            number += self.world

    def epoch(self, shards):
        for _ in range(shards):
            rows = self.ready.get()
            for i in range(0, len(rows) - self.batch + 1, self.batch):
                yield rows[i:i + self.batch]
