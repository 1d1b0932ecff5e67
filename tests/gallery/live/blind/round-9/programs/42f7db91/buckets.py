import torch
from torch.utils.data import Sampler


class RotatingBuckets(Sampler):
    """Batches of one length bucket each; the micro-batches of one update cover all buckets on every rank."""

    def __init__(self, lengths, batch_size, buckets, rank, world, seed=0):
        self.batch_size, self.buckets, self.rank, self.world, self.seed = batch_size, buckets, rank, world, seed
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        per = len(order) // buckets
        self.groups = [order[b * per:(b + 1) * per] for b in range(buckets)]
        self.updates = per // (batch_size * world)
        self.epoch = 0

    def __len__(self):
        return self.updates * self.buckets

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        mixed = [[grp[j] for j in torch.randperm(len(grp), generator=g).tolist()] for grp in self.groups]
        for u in range(self.updates):
            lo = (u * self.world + self.rank) * self.batch_size
            for k in range(self.buckets):
                b = (k + self.rank + u) % self.buckets
                yield mixed[b][lo:lo + self.batch_size]
