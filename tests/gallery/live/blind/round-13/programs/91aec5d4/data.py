import torch
from torch.utils.data import Dataset


class GaussianPatches(Dataset):
    def __init__(self, n, seed, tokens=49, inp=48, classes=20):
        g = torch.Generator().manual_seed(seed)
        self.centers = torch.randn(classes, inp, generator=torch.Generator().manual_seed(77))
        self.y = torch.randint(0, classes, (n,), generator=g)
        self.seed, self.tokens, self.inp = seed, tokens, inp

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1000003 + i)
        y = self.y[i]
        return torch.randn(self.tokens, self.inp, generator=g) + self.centers[y], y
