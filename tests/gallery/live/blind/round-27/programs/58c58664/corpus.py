"""Sharded audio-event corpus. Shards are listed in an index; records are decoded while reading."""
import time

import torch
from torch.utils.data import IterableDataset

NUM_CLASSES = 8


def decode(record_id, length=64):
    g = torch.Generator().manual_seed(record_id)
    wave = torch.randn(length * 16, generator=g)
    time.sleep(0.12)
    frames = wave.view(length, 16)
    label = record_id % NUM_CLASSES
    frames[:, label] += 0.7
    return {"frames": frames, "label": torch.tensor(label)}


class ShardedCorpus(IterableDataset):
    def __init__(self, index, seed=0):
        self.index = index
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        order = torch.randperm(len(self.index), generator=self.generator).tolist()
        for s in order:
            first, count = self.index[s]
            for record_id in range(first, first + count):
                yield decode(record_id)


def make_index(shards=60, per_shard=120):
    index, first = [], 0
    for _ in range(shards):
        index.append((first, per_shard))
        first += per_shard
    return index
