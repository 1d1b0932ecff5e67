"""A neural field: coordinates through random Fourier features and an MLP."""
import math

import torch
from torch import nn


class NeuralField(nn.Module):
    def __init__(self, features=16, hidden=24, scale=2.0):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(2, features) * scale)
        self.net = nn.Sequential(
            nn.Linear(2 * features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 3),
        )

    def forward(self, coordinates):
        phase = 2 * math.pi * coordinates @ self.frequencies
        return torch.sigmoid(self.net(torch.cat([phase.sin(), phase.cos()], -1)))


def make():
    return NeuralField()


def batch(rows):
    return torch.rand(rows, 2)
