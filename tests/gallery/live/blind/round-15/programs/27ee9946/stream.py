import logging
import os
import queue
import threading
import time

import numpy as np
import torch

from fetch import ShardLock, shard_path

log = logging.getLogger("stream")


class ShardStream:
    def __init__(self, folder, rank, world, batch):
        self.folder, self.rank, self.world, self.batch = folder, rank, world, batch
        self.buffer = queue.Queue(maxsize=2)
        self.thread = threading.Thread(target=self._read, name="shard-reader", daemon=True)
        self.thread.start()

    def _read(self):
        index = 0
        while True:
            path, waited = shard_path(self.folder, index), 0
            while not os.path.exists(path):
                time.sleep(0.25)
                waited += 1
                if waited % 20 == 0:
                    log.info("waiting for %s", os.path.basename(path))
            with ShardLock(path):
                with np.load(path) as z:
                    data = {k: z[k] for k in z.files}
            self.buffer.put((index, data))
            index += 1

    def shards(self):
        while True:
            yield self.buffer.get()

    def batches(self, data):
        order = np.argsort(data["lengths"], kind="stable")
        groups = order[: len(order) // (self.batch * self.world) * self.batch * self.world]
        groups = groups.reshape(-1, self.batch, self.world)
        pick = np.random.default_rng(len(order)).permutation(len(groups))
        for k in pick:
            idx = groups[k, :, self.rank]
            n = int(data["lengths"][idx].max())
            tok = torch.from_numpy(data["tokens"][idx, :n])
            mask = torch.arange(n)[None] >= torch.from_numpy(data["lengths"][idx])[:, None]
            yield tok, mask, torch.from_numpy(data["labels"][idx])

    def release(self, index):
        path = shard_path(self.folder, index)
        with ShardLock(path):
            os.remove(path)
        os.remove(path + ".lock")
