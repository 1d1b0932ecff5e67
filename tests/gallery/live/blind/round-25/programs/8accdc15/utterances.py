import random

import torch
from torch.utils.data import Dataset, Sampler


class Utterances(Dataset):
    """Mel frames of different lengths, listed by length as the manifest has them."""

    def __init__(self, n=480, mels=20):
        rng = random.Random(11)
        lengths = [rng.randint(20, 60) for _ in range(n * 3 // 4)]
        lengths += [rng.randint(380, 460) for _ in range(n - len(lengths))]
        self.lengths = sorted(lengths)
        self.mels = mels

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(self.lengths[i], self.mels, generator=g)


def pad(items):
    return torch.nn.utils.rnn.pad_sequence(items, batch_first=True)


class ChunkedBatchSampler(Sampler):
    """Every rank reads one contiguous chunk of the manifest, which keeps its files close together."""

    def __init__(self, dataset, rank, world, batch_size, max_frames=None):
        self.dataset, self.rank, self.world = dataset, rank, world
        self.batch_size, self.max_frames, self.epoch = batch_size, max_frames, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        ids = [i for i, n in enumerate(self.dataset.lengths) if self.max_frames is None or n <= self.max_frames]
        per_rank = len(ids) // self.world
        mine = ids[self.rank * per_rank:(self.rank + 1) * per_rank]
        random.Random(self.epoch * 131 + self.rank).shuffle(mine)
        n = per_rank // self.batch_size
        for b in range(n):
            yield mine[b * self.batch_size:(b + 1) * self.batch_size]
