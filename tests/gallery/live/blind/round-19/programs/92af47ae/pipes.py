import math

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.datapipes.iter import IterableWrapper


class Waves(Dataset):
    def __init__(self, n, length=256, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.freq = torch.rand(n, generator=g) * 8 + 1
        self.t = torch.linspace(0, 2 * math.pi, length)

    def __len__(self):
        return len(self.freq)

    def __getitem__(self, i):
        x = torch.sin(self.t * self.freq[i])
        return x + 0.1 * torch.randn_like(x), self.freq[i]


def render(freq):
    t = torch.linspace(0, 2 * math.pi, 256)
    return torch.sin(t * freq), torch.tensor(freq)


def train_loader(rank, world, batch_size):
    data = Waves(12000)
    sampler = torch.utils.data.DistributedSampler(data, world, rank)
    return DataLoader(data, batch_size, sampler=sampler, drop_last=True), sampler


def eval_loader(batch_size):
    pipe = IterableWrapper([1 + 0.05 * k for k in range(160)]).shuffle(buffer_size=64).map(render)
    return DataLoader(pipe, batch_size=batch_size)
