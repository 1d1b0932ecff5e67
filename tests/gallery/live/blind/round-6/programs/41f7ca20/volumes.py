import torch
from torch.utils.data import Dataset


class CachedVolumes(Dataset):
    def __init__(self, n=64, size=12):
        g = torch.Generator().manual_seed(4)
        self.x = torch.randn(n, 1, size, size, size, generator=g)
        self.y = (torch.nn.functional.avg_pool3d(self.x, 3, 1, 1) > 0).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def threshold_curve(prob, target, points=400):
    out = []
    for t in torch.linspace(0, 1, points):
        p = prob > t
        out.append(float((p * target).sum() * 2 / (p.sum() + target.sum() + 1e-6)))
    return out
