import torch
import torch.nn as nn


class WideDeep(nn.Module):
    def __init__(self, n=24, hid=160):
        super().__init__()
        self.wide = nn.Linear(n, 1)
        self.deep = nn.Sequential(nn.Linear(n, hid), nn.ReLU(), nn.Linear(hid, hid), nn.ReLU(), nn.Linear(hid, 1))

    def forward(self, x):
        return (self.wide(x) + self.deep(x)).squeeze(1)
