import random

from torch.utils.data import Sampler


class LengthGroupedBatches(Sampler):
    """Batches of similar length: megabatches are drawn at random, sorted, and cut into one batch per rank."""

    def __init__(self, lengths, batch_size, rank, world, seed=0):
        self.lengths = lengths
        self.batch_size = batch_size
        self.rank = rank
        self.world = world
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.lengths) // (self.batch_size * self.world)

    def __iter__(self):
        order = list(range(len(self.lengths)))
        random.Random(self.seed + self.epoch).shuffle(order)
        mega = self.batch_size * self.world
        for i in range(len(self)):
            chunk = sorted(order[i * mega : (i + 1) * mega], key=lambda j: self.lengths[j], reverse=True)
            yield chunk[self.rank * self.batch_size : (self.rank + 1) * self.batch_size]
