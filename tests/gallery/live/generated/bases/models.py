"""Small models with a list of blocks, for vectors or for token ids. Their sleep stands for work of
an accelerator: without it each job would be short of input, or of processors.
"""

from __future__ import annotations

HEAD = """import time

import torch
from torch import nn
import torch.nn.functional as F
"""
BLOCKS = (
    """

class $Block(nn.Module):
    def __init__(self, width, factor=2):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width * factor)
        self.down = nn.Linear(width * factor, width)

    def forward(self, hidden):
        time.sleep(0.005)
        return hidden + self.down(F.gelu(self.up(self.norm(hidden))))
""",
    """

class $Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, hidden):
        time.sleep(0.005)
        return torch.tanh(self.down(torch.relu(self.up(hidden)))) + hidden
""",
)
DENSE = (
    """

class $Net(nn.Module):
    def __init__(self, width=24, depth=2, classes=4):
        super().__init__()
        self.first = nn.Linear(16, width)
        self.blocks = nn.ModuleList([$Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, hidden):
        hidden = self.first(hidden)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)
""",
    """

class $Net(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, kernel_size=3, padding=1)
        self.blocks = nn.ModuleList($Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 4)

    def forward(self, signal):
        hidden = self.conv(signal.unsqueeze(1)).flatten(1)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)
""",
)
TOKENS = (
    """

class $Net(nn.Module):
    def __init__(self, vocabulary=97, width=24, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([$Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 4)

    def forward(self, ids):
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden.mean(1))
""",
    """

class $Net(nn.Module):
    def __init__(self, width=16, depth=2):
        super().__init__()
        self.embed = nn.Embedding(128, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.blocks = nn.ModuleList([$Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 4)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        hidden = hidden[:, -1]
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)
""",
)
