import torch
from torch import nn


class SetEncoder(nn.Module):
    def __init__(self, dim=10, hidden=96, classes=12):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.gate = nn.Linear(hidden, 1)
        self.rho = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, classes))

    def forward(self, x, mask):
        h = self.phi(x)
        w = self.gate(h).squeeze(-1).masked_fill(~mask, -1e9).softmax(-1)
        return self.rho((w.unsqueeze(-1) * h).sum(1))
