import torch
import torch.nn as nn

VOCAB = 96


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class ActorCritic(nn.Module):
    def __init__(self, dim=64, layers=3):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.lm_head = nn.Linear(dim, VOCAB, bias=False)
        self.value_head = nn.Linear(dim, 1)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + torch.cumsum(x, dim=1) / torch.arange(1, tokens.shape[1] + 1, device=x.device).view(1, -1, 1)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(x), self.value_head(x).squeeze(-1)
