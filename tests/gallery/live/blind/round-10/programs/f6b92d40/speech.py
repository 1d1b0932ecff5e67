import random

import torch
from torch.utils.data import Dataset, Sampler


class Utterances(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.frames = [min(int(rng.lognormvariate(4.2, 0.6)) + 20, 400) for _ in range(n)]
        self.seed = seed

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1000003 + i)
        label = int(torch.randint(0, 10, (1,), generator=g))
        x = torch.randn(self.frames[i], 40, generator=g) * 0.5
        x[:, label * 4 : label * 4 + 4] += 0.7
        return x, label


class FrameBudgetBatches(Sampler):
    """Batches of similar length within a frame budget; every rank gets equally many of nearly equal cost."""

    def __init__(self, frames, budget, rank, world, seed=0):
        self.frames, self.budget, self.rank, self.world, self.seed = frames, budget, rank, world, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        order = sorted(range(len(self.frames)), key=lambda i: self.frames[i] + rng.random() * 20)
        batches, cur = [], []
        for i in order:
            if cur and (len(cur) + 1) * self.frames[i] > self.budget:
                batches.append(cur)
                cur = []
            cur.append(i)
        groups = [batches[i : i + self.world] for i in range(0, len(batches) - self.world + 1, self.world)]
        rng.shuffle(groups)
        for k, g in enumerate(groups):
            yield g[(self.rank + k) % self.world]


def collate(rows):
    t = max(x.shape[0] for x, _ in rows)
    out = torch.zeros(len(rows), t, 40)
    mask = torch.zeros(len(rows), t)
    for i, (x, _) in enumerate(rows):
        out[i, : len(x)] = x
        mask[i, : len(x)] = 1
    return out, mask, torch.tensor([y for _, y in rows])
