import random

import torch
from torch.utils.data import IterableDataset


class Bucket:
    """Samples of one aspect ratio; a rank owns every world-th sample after the filters of this epoch."""

    def __init__(self, name, size, quality, seed):
        rng = random.Random(seed)
        self.name = name
        self.samples = [(i, rng.random()) for i in range(size)]
        self.quality = quality

    def split(self, epoch, rank, world):
        keep = [i for i, q in self.samples if q >= self.quality[min(epoch, len(self.quality) - 1)]]
        return keep[rank::world]


class BlendDataset(IterableDataset):
    def __init__(self, buckets, weights, rank, world, samples_per_epoch):
        self.buckets, self.weights = buckets, weights
        self.rank, self.world = rank, world
        self.samples_per_epoch = samples_per_epoch
        self.epoch = 0

    def __iter__(self):
        rng = random.Random(self.epoch * 1000 + self.rank)
        parts = [b.split(self.epoch, self.rank, self.world) for b in self.buckets]
        cursors = [0] * len(parts)
        produced = 0
        while produced < self.samples_per_epoch:
            k = rng.choices(range(len(parts)), self.weights)[0]
            if cursors[k] >= len(parts[k]):
                cursors[k] = 0
                rng.shuffle(parts[k])
                continue
            i = parts[k][cursors[k]]
            cursors[k] += 1
            produced += 1
            yield self.load(k, i)

    def load(self, k, i):
        g = torch.Generator().manual_seed(k * 100000 + i)
        return torch.randn(3, 16, 16, generator=g), torch.tensor(k)
