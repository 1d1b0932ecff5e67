"""A residual network with BatchNorm and dropout for small images; its loss is the trainer's."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Net(nn.Module):
    def __init__(self, width=12, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(Residual(width), nn.MaxPool2d(2), Residual(width))
        self.fc = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, classes))

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)))


def make(width=12):
    return Net(width)


def sample():
    return torch.randn(6, 1, 28, 28)
