import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, features=16, hidden=32, classes=8):
        super().__init__()
        self.conv = nn.Conv1d(features, hidden, 5, padding=2)
        self.out = nn.Linear(hidden, classes)

    def forward(self, frames):
        return self.out(self.conv(frames.transpose(1, 2)).relu().mean(-1))
