import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.ch = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class FirstStage(nn.Module):
    def __init__(self, dim, tokens, patch_dim, blocks):
        super().__init__()
        self.proj = nn.Linear(patch_dim, dim)
        self.blocks = nn.Sequential(*(Mixer(dim, tokens) for _ in range(blocks)))

    def forward(self, x):
        return self.blocks(self.proj(x))


class LastStage(nn.Module):
    def __init__(self, dim, tokens, classes, blocks):
        super().__init__()
        self.blocks = nn.Sequential(*(Mixer(dim, tokens) for _ in range(blocks)))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.blocks(x).mean(1))
