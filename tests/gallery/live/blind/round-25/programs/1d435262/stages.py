import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM, SEQ = 211, 48, 24


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = nn.MultiheadAttention(DIM, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class StageModule(nn.Module):
    def __init__(self, index, n_stages):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM) if index == 0 else None
        self.blocks = nn.Sequential(Block())
        self.head = nn.Linear(DIM, VOCAB) if index == n_stages - 1 else None

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
        x = self.blocks(x)
        return x if self.head is None else self.head(x)


def lm_loss(logits, labels):
    return F.cross_entropy(logits.reshape(-1, VOCAB), labels.reshape(-1), ignore_index=-100)
