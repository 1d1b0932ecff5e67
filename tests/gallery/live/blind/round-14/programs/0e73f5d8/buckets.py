import random

import torch
from torch.utils.data import Dataset


class Utterances(Dataset):
    def __init__(self, n=1530, seed=5):
        rng = random.Random(seed)
        self.frames = [rng.randrange(40, 120) for _ in range(n)]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(self.frames[i], 20, generator=g), torch.randint(0, 30, (1,), generator=g)


class DynamicBatches:
    """Fills batches up to a number of frames; the ranks end up with slightly different batch counts."""

    def __init__(self, frames, rank, world, max_frames=1000):
        self.frames, self.rank, self.world, self.max_frames = frames, rank, world, max_frames
        self.epoch = 0

    def __iter__(self):
        order = list(range(len(self.frames)))
        random.Random(self.epoch).shuffle(order)
        batch, longest = [], 0
        for i in order[self.rank::self.world]:
            longest = max(longest, self.frames[i])
            if batch and longest * (len(batch) + 1) > self.max_frames:
                yield batch
                batch, longest = [], self.frames[i]
            batch.append(i)
        if batch:
            yield batch


def collate(items):
    n = max(x.shape[0] for x, _ in items)
    out = torch.zeros(len(items), n, items[0][0].shape[1])
    for k, (x, _) in enumerate(items):
        out[k, :len(x)] = x
    return out, torch.cat([y for _, y in items])
