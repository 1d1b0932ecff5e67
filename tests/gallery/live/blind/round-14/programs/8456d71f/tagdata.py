import torch
from torch.utils.data import Dataset


class Sentences(Dataset):
    """Sentences of 10 to 40 tokens with a tag for each token."""

    def __init__(self, n, seed, vocab=400, tags=12):
        self.n, self.seed, self.vocab, self.tags = n, seed, vocab, tags

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.seed * 1000003 + i)
        length = int(torch.randint(10, 41, (1,), generator=gen))
        ids = torch.randint(1, self.vocab, (length,), generator=gen)
        return ids, ids * 7 % self.tags


def collate(rows, width=40):
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    tags = torch.full((len(rows), width), -100)
    for i, (x, t) in enumerate(rows):
        ids[i, : len(x)] = x
        tags[i, : len(t)] = t
    return ids, tags
