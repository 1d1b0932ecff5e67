import torch
from torch import nn


class TagEncoder(nn.Module):
    def __init__(self, vocab=401, dim=128, depth=3, n_tags=7):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(32, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 256, dropout=0.0, batch_first=True) for _ in range(depth)
        )
        self.out = nn.Linear(dim, n_tags)

    def forward(self, ids):
        x = self.emb(ids) + self.pos(torch.arange(ids.shape[1]))
        pad = ids == 0
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=pad)
        return torch.log_softmax(self.out(x), -1)
