import math
import time

import torch
from torch.utils.data import Dataset

_lexicon = None


def open_lexicon(worker_id):
    global _lexicon
    t0 = time.time()
    _lexicon = {}
    while time.time() - t0 < 5.5:
        for k in range(2000):
            _lexicon[k] = math.sqrt(k + len(_lexicon))
        time.sleep(0.05)


class Keywords(Dataset):
    def __init__(self, n=1600):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        y = i % 12
        t = torch.arange(1600) / 1600
        w = torch.sin(2 * math.pi * (20 + 15 * y) * t) + 0.5 * torch.randn(1600, generator=g)
        return w, y
