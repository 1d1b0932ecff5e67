import torch
import torch.nn as nn


class GPT(nn.Module):
    def __init__(self, vocab=1024, d=96, layers=2, t=64):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(t, d)
        self.h = nn.ModuleList(nn.TransformerEncoderLayer(d, 4, 4 * d, 0.0, batch_first=True) for _ in range(layers))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(t), persistent=False)
        self.lm_head = nn.Linear(d, vocab)

    def forward(self, x, y):
        t = x.shape[1]
        h = self.wte(x) + self.wpe(torch.arange(t))
        for blk in self.h:
            h = blk(h, src_mask=self.mask[:t, :t])
        return nn.functional.cross_entropy(self.lm_head(h).flatten(0, 1), y.flatten())
