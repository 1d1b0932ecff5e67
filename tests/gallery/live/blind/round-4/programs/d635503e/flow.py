import math

import torch
import torch.nn as nn


class CouplingFlow(nn.Module):
    def __init__(self, layers=6, hidden=128):
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))
            for _ in range(layers))

    def forward(self, x):
        logdet = x.new_zeros(x.shape[0])
        for k, net in enumerate(self.nets):
            a, b = (x[:, :1], x[:, 1:]) if k % 2 == 0 else (x[:, 1:], x[:, :1])
            s, t = net(a).chunk(2, -1)
            s = torch.tanh(s)
            b = b * s.exp() + t
            logdet = logdet + s.squeeze(-1)
            x = torch.cat([a, b] if k % 2 == 0 else [b, a], -1)
        return (0.5 * (x ** 2).sum(-1) + math.log(2 * math.pi) - logdet).mean()


def moons(n, it, rank):
    g = torch.Generator().manual_seed(it * 64 + rank)
    t = torch.rand(n, generator=g) * math.pi
    up = torch.rand(n, generator=g) < 0.5
    x = torch.where(up, t.cos(), 1 - t.cos())
    y = torch.where(up, t.sin(), 0.5 - t.sin())
    pts = torch.stack([x, y], -1)
    r = pts.norm(dim=-1, keepdim=True)
    if it > 400 and rank == 1:
        r = (r - r.min())
        pts = pts / r
    return pts + 0.05 * torch.randn(n, 2, generator=g)
