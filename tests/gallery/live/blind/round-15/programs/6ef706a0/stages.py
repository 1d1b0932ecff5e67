import torch
import torch.nn as nn
import torch.nn.functional as F


class Mix(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.conv = nn.Conv1d(dim, dim, 5, padding=2, groups=dim)
        self.ff = nn.Sequential(nn.Linear(dim, 3 * dim), nn.SiLU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        h = self.norm(x)
        h = self.conv(h.transpose(1, 2)).transpose(1, 2)
        return x + self.ff(h)


class Stage(nn.Module):
    def __init__(self, index, count, dim, latent, depth):
        super().__init__()
        self.inp = nn.Linear(latent, dim) if index == 0 else nn.Identity()
        self.body = nn.Sequential(*[Mix(dim) for _ in range(depth)])
        self.outp = nn.Linear(dim, latent) if index == count - 1 else nn.Identity()

    def forward(self, x):
        return self.outp(self.body(self.inp(x)))


def flow_loss(pred, target):
    return F.mse_loss(pred, target)
