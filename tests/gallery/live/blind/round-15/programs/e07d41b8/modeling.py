import torch
import torch.nn as nn


class TinyLM(nn.Module):
    def __init__(self, vocab=512, dim=64, layers=2, max_len=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, dim * 4, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        n = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        h = self.embed(ids) + self.pos(torch.arange(n))
        return self.head(self.body(h, mask=mask, is_causal=True))


def build_model():
    return TinyLM()
