import torch
from torch import nn


class Entry(nn.Module):
    """first part of the U: also produces the long-range feature used by the head"""

    def __init__(self, d):
        super().__init__()
        self.proj = nn.Linear(d, d)

    def forward(self, x):
        y = torch.relu(self.proj(x))
        return y, y * 0.5


class Middle(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))

    def forward(self, x):
        return self.body(x)


class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.out = nn.Linear(d, 1)

    def forward(self, x, skip=None):
        if skip is not None:
            x = x + skip
        return self.out(x)
