import torch
from torch.utils.data import Dataset


class CurriculumSet(Dataset):
    def __init__(self, n, history, dim=256):
        g = torch.Generator().manual_seed(5)
        self.x = torch.randn(n, dim, generator=g)
        self.y = (self.x[:, :4].sum(1) > 0).long()
        self.history = history

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if self.history is not None:
            strength = 0.3 / (1.0 + self.history.difficulty(i))
            x = x + strength * torch.randn(x.shape)
        return i, x, self.y[i]
