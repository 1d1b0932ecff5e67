import time

import torch
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, rank, n=400):
        self.rank, self.n = rank, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(1.5 if i % 80 == self.rank * 20 else 0.02)
        g = torch.Generator().manual_seed(i * 3 + self.rank)
        return torch.randn(24, generator=g), i % 4


def summarizer(inbox, outbox):
    while True:
        step, losses = inbox.get()
        outbox.put((step, sum(losses) / len(losses)))
