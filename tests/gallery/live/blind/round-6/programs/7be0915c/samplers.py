import math

import torch
from torch.utils.data import Sampler


class GroupInDriveSampler(Sampler):
    """Each rank gets a run of consecutive frames so that the file cache stays warm."""

    def __init__(self, size, rank, world, seed=0):
        self.size, self.rank, self.world, self.seed, self.epoch = size, rank, world, seed, 0
        self.per = math.ceil(size / world)

    def set_epoch(self, e):
        self.epoch = e

    def __len__(self):
        return self.per

    def __iter__(self):
        lo = self.rank * self.per
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        return iter([(lo + j) % self.size for j in torch.randperm(self.per, generator=g).tolist()])
