"""A causal language model whose feed-forward is a mixture of experts, each token to its two best, with a balancing loss."""

import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, dim, experts=4, chosen=2):
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, dim, 2 * dim) * 0.05)
        self.down = nn.Parameter(torch.randn(experts, 2 * dim, dim) * 0.05)
        self.chosen = chosen

    def forward(self, x):
        share = self.router(x).softmax(-1)
        top, which = share.topk(self.chosen, dim=-1)
        gate = torch.zeros_like(share).scatter(-1, which, top / top.sum(-1, keepdim=True))
        each = torch.einsum("blef,efd->bled", F.gelu(torch.einsum("bld,edf->blef", x, self.up)), self.down)
        load = share.mean(dim=1)
        self.balance = (load * load).sum(-1).mean() * share.size(-1)
        return (gate.unsqueeze(-1) * each).sum(2)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.experts = Experts(dim)

    def forward(self, x, causal):
        y = self.ln1(x)
        x = x + self.attn(y, y, y, attn_mask=causal, need_weights=False)[0]
        return x + self.experts(self.ln2(x))


class MoE(nn.Module):
    def __init__(self, vocab=64, dim=24, heads=2, layers=2, longest=128):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, dim), nn.Embedding(longest, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)
        self.max_len = longest

    def forward(self, input_ids, labels=None):
        length = input_ids.size(1)
        x = self.tokens(input_ids) + self.positions.weight[:length]
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        for layer in self.layers:
            x = layer(x, causal)
        logits = self.head(x)
        if labels is None:
            return {"logits": logits}
        balance = sum(layer.experts.balance for layer in self.layers)
        return {"loss": F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()) + 0.01 * balance, "logits": logits}


def make():
    return MoE()


def sample(rows, length):
    ids = torch.randint(64, (rows, length))
    return {"input_ids": ids, "labels": ids}
