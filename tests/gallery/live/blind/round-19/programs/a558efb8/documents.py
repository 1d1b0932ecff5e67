import random

import torch


class Documents(torch.utils.data.IterableDataset):
    """Documents of very different lengths; both tensor-parallel peers of a replica read the same ones."""

    def __init__(self, replica, batch, words=3000, seed=17):
        self.replica, self.batch, self.words, self.seed = replica, batch, words, seed

    def __iter__(self):
        rng = random.Random(self.seed + self.replica)
        gen = torch.Generator().manual_seed(self.seed * 10 + self.replica)
        while True:
            lengths = [min(4000, int(rng.lognormvariate(4.5, 0.9)) + 4) for _ in range(self.batch)]
            ids = torch.randint(self.words, (sum(lengths),), generator=gen)
            offsets = torch.tensor([0] + lengths[:-1]).cumsum(0)
            sums = torch.zeros(self.batch).index_add_(
                0, torch.repeat_interleave(torch.arange(self.batch), torch.tensor(lengths)), (ids < 1000).float())
            yield ids, offsets, (sums / torch.tensor(lengths) > 0.334).float()
