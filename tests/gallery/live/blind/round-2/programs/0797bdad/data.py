import torch
from torch.utils.data import Dataset


class ToyIntents(Dataset):
    def __init__(self, n, seed, length=16, vocab=512, labels=6):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, labels, (n,), generator=g)
        self.ids = torch.randint(1, vocab, (n, length), generator=g)
        self.ids[:, 0] = self.labels + 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "mask": torch.ones_like(self.ids[i], dtype=torch.bool), "labels": self.labels[i]}
