import torch
from torch import nn


class DepthSchedule:
    """Linear decay of the survival probability over the blocks."""

    def __init__(self, blocks, final):
        self.p = [1 - (i + 1) / blocks * (1 - final) for i in range(blocks)]
        self.active = False

    def keep(self, i):
        return not self.active or torch.rand(1).item() < self.p[i]


class Block(nn.Module):
    def __init__(self, ch, index, schedule):
        super().__init__()
        self.index, self.schedule = index, schedule
        self.f = nn.Sequential(nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU(), nn.Conv2d(ch, ch, 3, padding=1))

    def forward(self, x):
        if self.training and not self.schedule.keep(self.index):
            return x
        return torch.relu(x + self.f(x))


class ResNetSD(nn.Module):
    def __init__(self, blocks=6, ch=12, classes=5, survival=0.5):
        super().__init__()
        self.schedule = DepthSchedule(blocks, survival)
        self.stem = nn.Conv2d(3, ch, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[Block(ch, i, self.schedule) for i in range(blocks)])
        self.fc = nn.Linear(ch, classes)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))
