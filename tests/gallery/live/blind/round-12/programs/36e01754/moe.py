import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, send, recv, group):
        ctx.send, ctx.recv, ctx.group = send, recv, group
        out = x.new_empty(sum(recv), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), recv, send, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        out = g.new_empty(sum(ctx.send), g.shape[1])
        dist.all_to_all_single(out, g.contiguous(), ctx.send, ctx.recv, group=ctx.group)
        return out, None, None, None


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class HashRoutedMoE(nn.Module):
    """One expert per rank, tokens routed by a fixed table over the vocabulary."""

    def __init__(self, dim, hidden, vocab, group):
        super().__init__()
        self.group = group
        self.n = dist.get_world_size(group)
        self.expert = Expert(dim, hidden)
        self.register_buffer("table", torch.arange(vocab) * self.n // vocab, persistent=False)

    def forward(self, x, tokens):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        dest = self.table[tokens.reshape(-1)]
        order = torch.argsort(dest, stable=True)
        send = torch.bincount(dest, minlength=self.n)
        recv = torch.empty_like(send)
        dist.all_to_all_single(recv, send, group=self.group)
        send, recv = send.tolist(), recv.tolist()
        got = _AllToAll.apply(x[order], send, recv, self.group)
        if got.shape[0] > 0:
            got = self.expert(got)
        back = _AllToAll.apply(got, recv, send, self.group)
        out = torch.empty_like(back).index_copy(0, order, back)
        return out.reshape(shape)


class TinyLM(nn.Module):
    def __init__(self, vocab, dim, hidden, layers, group):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.ModuleList(nn.GRU(dim, dim, batch_first=True) for _ in range(layers))
        self.moe = nn.ModuleList(HashRoutedMoE(dim, hidden, vocab, group) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.emb(tokens)
        for mix, moe in zip(self.mix, self.moe):
            x = x + mix(x)[0]
            x = x + moe(x, tokens)
        return self.head(x)
