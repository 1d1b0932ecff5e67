"""torch's own nn.Transformer, source to target."""

import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=70, d_model=32, nhead=4, layers=2):
        super().__init__()
        self.src = nn.Embedding(vocab, d_model)
        self.tgt = nn.Embedding(vocab, d_model)
        self.transformer = nn.Transformer(d_model, nhead, layers, layers, 2 * d_model, dropout=0.1, batch_first=True)
        self.out = nn.Linear(d_model, vocab)

    def forward(self, src, tgt, labels=None):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1), device=tgt.device, dtype=self.out.weight.dtype)
        hidden = self.transformer(self.src(src), self.tgt(tgt), tgt_mask=mask, tgt_is_causal=True)
        logits = self.out(hidden)
        if labels is None:
            return logits
        return nn.functional.cross_entropy(logits.transpose(1, 2), labels), logits


def make():
    return Seq2Seq()


def sample(rows, length):
    return {"src": torch.randint(70, (rows, length)), "tgt": torch.randint(70, (rows, length)), "labels": torch.randint(70, (rows, length))}
