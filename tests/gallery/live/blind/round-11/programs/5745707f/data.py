import torch
from torch.utils.data import Dataset


class NliPairs(Dataset):
    def __init__(self, n, seed, vocab=600, length=40):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(10, vocab, (n, length), generator=g)
        self.labels = (self.ids[:, : length // 2].sum(1) > self.ids[:, length // 2:].sum(1)).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}
