import json
import logging
import os
import zlib

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from .shared import SharedBarrier

log = logging.getLogger("streaming")


class StreamingDataset(IterableDataset):
    def __init__(self, local, rank, world_size, batch_size, shuffle_seed=9176, run_id="0"):
        self.local = local
        self.rank, self.world_size = rank, world_size
        self.batch_size = batch_size
        self.shuffle_seed = shuffle_seed
        self.epoch = -1
        with open(os.path.join(local, "index.json")) as f:
            self.index = json.load(f)
        self.num_samples = sum(s["samples"] for s in self.index["shards"])
        self._barrier = SharedBarrier(f"/tmp/streaming/{run_id}/barrier_filelock", f"{run_id}_barrier")

    @property
    def size(self):
        return self.num_samples // self.world_size

    def _get_work(self):
        info = get_worker_info()
        num_workers = info.num_workers if info else 1
        worker = info.id if info else 0
        self.epoch += 1
        self._barrier(self.world_size * num_workers)
        shards = self.index["shards"][self.rank :: self.world_size]
        mine = shards[worker::num_workers]
        order = np.random.default_rng(self.shuffle_seed + self.epoch).permutation(len(mine))
        return [mine[i] for i in order]

    def _read(self, shard):
        path = os.path.join(self.local, shard["file"])
        with open(path, "rb") as f:
            raw = f.read()
        for begin, end in zip(shard["offsets"][:-1], shard["offsets"][1:]):
            try:
                arr = np.frombuffer(zlib.decompress(raw[begin:end]), dtype=np.float32)
            except zlib.error as e:
                log.warning("%s: skip sample at %d (%s)", shard["file"], begin, e)
                continue
            yield torch.from_numpy(arr[:-1].copy()).view(3, 16, 16), int(arr[-1])

    def __iter__(self):
        for shard in self._get_work():
            yield from self._read(shard)
