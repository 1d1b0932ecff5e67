import torch
from torch.utils.data import Sampler


class CurriculumSampler(Sampler):
    """Few categories in the first pass, more of them later on; split over the ranks."""

    def __init__(self, catalogue, rank, world, start=8, grow=5, seed=0):
        self.cat, self.rank, self.world = catalogue, rank, world
        self.start, self.grow, self.seed, self.epoch = start, grow, seed, 0

    def set_epoch(self, e):
        self.epoch = e

    def __iter__(self):
        top = self.start + self.grow * self.epoch
        idx = [i for i, o in enumerate(self.cat.objects) if o[0] < top]
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(idx), generator=g).tolist()
        n = len(order) // self.world * self.world
        return iter([idx[j] for j in order[:n]][self.rank::self.world])
