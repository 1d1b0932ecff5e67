import torch.nn as nn


class DecoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def split_layers(num_layers, pp):
    base, rest = divmod(num_layers, pp)
    return [base + (1 if i < rest else 0) for i in range(pp)]


def build_stage(idx, pp, vocab, dim, num_layers):
    mods = []
    if idx == 0:
        mods.append(nn.Embedding(vocab, dim))
    mods += [DecoderLayer(dim) for _ in range(split_layers(num_layers, pp)[idx])]
    if idx == pp - 1:
        mods += [nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)]
    return nn.Sequential(*mods)
