import torch
import torch.distributed as dist
from torch import nn


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, send, recv):
        ctx.send, ctx.recv = send, recv
        out = x.new_empty(sum(recv), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), recv, send)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(sum(ctx.send), grad.shape[1])
        dist.all_to_all_single(out, grad.contiguous(), ctx.send, ctx.recv)
        return out, None, None


class ExpertParallelFFN(nn.Module):
    """One expert per rank, tokens are routed by id (hash routing)."""

    def __init__(self, dim, mult=4):
        super().__init__()
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.expert = nn.Sequential(nn.Linear(dim, mult * dim), nn.GELU(), nn.Linear(mult * dim, dim))
        for p in self.expert.parameters():
            p.is_expert = True

    def forward(self, x, ids):
        """x: (tokens, dim), padding already removed; ids: (tokens,)"""
        if x.shape[0] == 0:
            return x
        owner = ids % self.world
        order = owner.argsort(stable=True)
        send = torch.bincount(owner, minlength=self.world)
        recv = torch.empty_like(send)
        dist.all_to_all_single(recv, send)
        s, r = send.tolist(), recv.tolist()
        inbox = _AllToAll.apply(x[order], s, r)
        back = _AllToAll.apply(self.expert(inbox), r, s)
        return torch.zeros_like(x).index_copy(0, order, back)
