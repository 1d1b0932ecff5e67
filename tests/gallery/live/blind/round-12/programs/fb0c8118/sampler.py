from collections import deque

import torch
from torch.utils.data import Sampler


class NoDuplicatesBatchSampler(Sampler):
    """Batches of this rank's shard in which no anchor occurs twice (in-batch negatives)."""

    def __init__(self, dataset, batch_size, rank, world, seed=0):
        self.dataset, self.batch_size, self.seed, self.epoch = dataset, batch_size, seed, 0
        per = len(dataset) // world
        self.shard = range(rank * per, (rank + 1) * per)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.shard) // self.batch_size

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        remaining = deque(self.shard[i] for i in torch.randperm(len(self.shard), generator=g).tolist())
        for _ in range(len(self)):
            batch, seen = [], set()
            while len(batch) < self.batch_size:
                idx = remaining.popleft()
                key = self.dataset.anchor(idx)
                if key in seen:
                    remaining.append(idx)
                    continue
                seen.add(key)
                batch.append(idx)
            yield batch
