import torch
import torch.nn as nn


class Potential(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, pos):
        d = torch.cdist(pos, pos)
        basis = torch.exp(-(d.unsqueeze(-1) - torch.linspace(0, 4, 16)).pow(2) * 4)
        return self.net(basis).sum((1, 2, 3))


def random_clusters(seed, n):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n):
        pos = torch.rand(8, 10, 3, generator=g) * 3
        yield pos, torch.cdist(pos, pos).clamp(min=0.5).pow(-2).sum((1, 2))
