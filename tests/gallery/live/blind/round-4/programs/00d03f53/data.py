import torch
from torch.utils.data import Dataset


class Blobs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 10, (n,), generator=g)
        proto = torch.randn(10, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        self.x = proto[self.y] + 0.8 * torch.randn(n, 3, 32, 32, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
