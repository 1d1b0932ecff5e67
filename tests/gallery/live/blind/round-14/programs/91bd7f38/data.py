import numpy as np
import torch
from torch.utils.data import Dataset


class Conversations(Dataset):
    """Chat turns; most are long, a few are one-word replies."""

    def __init__(self, n=4000, seed=11):
        rng = np.random.default_rng(seed)
        self.lengths = rng.integers(16, 40, n)
        replies = np.arange(364, 380)
        self.lengths[replies] = rng.integers(3, 8, len(replies))
        self.seed = seed

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        return torch.randint(1, 300, (int(self.lengths[i]),), generator=g)


def collate(batch):
    lengths = torch.tensor([len(b) for b in batch])
    out = torch.zeros(len(batch), int(lengths.max()), dtype=torch.long)
    for i, b in enumerate(batch):
        out[i, :len(b)] = b
    return out, lengths


class BlockSampler:
    """Contiguous blocks of one batch, dealt out to the ranks in turn."""

    def __init__(self, n, batch, rank, world):
        self.n, self.batch, self.rank, self.world = n, batch, rank, world

    def __iter__(self):
        blocks = self.n // self.batch
        for b in range(self.rank, blocks - blocks % self.world, self.world):
            yield list(range(b * self.batch, (b + 1) * self.batch))

    def __len__(self):
        return self.n // self.batch // self.world
