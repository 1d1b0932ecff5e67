import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Linear(32, width)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(2)])
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b(x)
        return self.out(x)
