import torch
import torch.nn as nn


class Sage(nn.Module):
    def __init__(self, din, hidden, classes):
        super().__init__()
        self.a, self.b = nn.Linear(din, hidden), nn.Linear(din, hidden)
        self.out = nn.Sequential(nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, x, nbr):
        return self.out(self.a(x) + self.b(nbr))
