import torch
from torch import nn

from corpus import IGNORE


class NoTargets(Exception):
    pass


class TinyLM(nn.Module):
    def __init__(self, vocab=256, dim=96, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(64, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        n = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.tok(ids) + self.pos(torch.arange(n))
        return self.out(self.blocks(x, mask=mask, is_causal=True))


def token_loss(logits, labels):
    target = labels[:, 1:]
    if not (target != IGNORE).any():
        raise NoTargets
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), target.flatten(), ignore_index=IGNORE)
