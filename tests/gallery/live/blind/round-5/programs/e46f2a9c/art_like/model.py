import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, obs=24, act=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 48), nn.Tanh(), nn.Linear(48, act))

    def forward(self, o):
        return self.net(o).log_softmax(-1)


def rollouts(n, rank, rnd):
    g = torch.Generator().manual_seed(rnd * 10 + rank)
    # group 1 plays the hard levels: now and then a run ends with a terrible reward
    rew = torch.randn(n, generator=g) * 0.1
    if rank == 1 and rnd == 9:
        rew[n // 2] = -9.0
    return [[(torch.randn(24, generator=g), r)] * 2 for r in rew]
