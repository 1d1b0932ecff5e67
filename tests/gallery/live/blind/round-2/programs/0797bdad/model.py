import torch
from torch import nn


class TinyEncoder(nn.Module):
    def __init__(self, vocab=512, dim=32, labels=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 64, batch_first=True, dropout=0.1)
        self.head = nn.Linear(dim, labels)

    def forward(self, ids, mask):
        h = self.layer(self.emb(ids), src_key_padding_mask=~mask)
        h = (h * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return self.head(h)
