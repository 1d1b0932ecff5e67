import torch
import torch.nn as nn


class Captioner(nn.Module):
    def __init__(self, vocab=120, dim=96, feat=64):
        super().__init__()
        self.proj = nn.Linear(feat, dim)
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, feats, tokens):
        h0 = self.proj(feats).unsqueeze(0)
        h, _ = self.cell(self.embed(tokens), h0)
        return self.out(h)

    @torch.no_grad()
    def greedy(self, feats, length):
        tokens = torch.zeros(len(feats), 1, dtype=torch.long)
        for _ in range(length):
            tokens = torch.cat([tokens, self(feats, tokens)[:, -1:].argmax(-1)], dim=1)
        return tokens[:, 1:]


def synthetic(n, seed, vocab=120, feat=64, length=16):
    g = torch.Generator().manual_seed(seed)
    feats = torch.randn(n, feat, generator=g)
    tokens = (feats[:, :length].mul(20).long().abs() + torch.arange(length)) % vocab
    return feats, tokens
