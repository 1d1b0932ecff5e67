"""Mixture of small text-classification corpora; every example carries its corpus id."""
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CORPORA = ["news", "reviews", "forum", "legal", "clinical"]
TRAIN_MIX = [0.3, 0.3, 0.2, 0.1, 0.1]
VAL_COUNTS = {"news": 30, "reviews": 24, "forum": 16, "legal": 12, "clinical": 2}


class Mixture(Dataset):
    def __init__(self, corpus_ids, seed):
        g = torch.Generator().manual_seed(seed)
        self.corpus = torch.as_tensor(corpus_ids)
        self.x = torch.randn(len(self.corpus), 32, generator=g) + self.corpus[:, None] * 0.1
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.corpus)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i], "corpus": self.corpus[i]}


def train_set(size=960):
    g = torch.Generator().manual_seed(3)
    ids = torch.multinomial(torch.tensor(TRAIN_MIX), size, replacement=True, generator=g)
    return Mixture(ids, seed=11)


def val_set():
    ids = [c for c, name in enumerate(CORPORA) for _ in range(VAL_COUNTS[name])]
    return Mixture(ids, seed=12)


def val_loader(rank, world_size, batch_size=4):
    data = val_set()
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=False)
    return DataLoader(data, batch_size=batch_size, sampler=sampler)
