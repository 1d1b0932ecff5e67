import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, out_splits, in_splits, group):
        ctx.out_splits, ctx.in_splits, ctx.group = out_splits, in_splits, group
        out = x.new_empty((sum(out_splits), x.shape[1]))
        dist.all_to_all_single(out, x.contiguous(), out_splits, in_splits, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty((sum(ctx.in_splits), grad.shape[1]))
        dist.all_to_all_single(out, grad.contiguous(), ctx.in_splits, ctx.out_splits, group=ctx.group)
        return out, None, None, None


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w_in = nn.Linear(dim, 2 * dim)
        self.w_out = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.w_out(F.silu(self.w_in(x)))


class HashRoutedMoE(nn.Module):
    """Fixed token-id routing, local experts on each rank of the expert-parallel group."""

    def __init__(self, dim, num_experts, vocab, ep_group):
        super().__init__()
        self.group = ep_group
        self.ep_size = dist.get_world_size(ep_group)
        self.local = num_experts // self.ep_size
        self.num_experts = num_experts
        self.bucket = vocab // num_experts
        self.experts = nn.ModuleList(Expert(dim) for _ in range(self.local))

    def forward(self, x, token_ids):
        flat = x.reshape(-1, x.shape[-1])
        expert_of = (token_ids.reshape(-1) // self.bucket).clamp(max=self.num_experts - 1)
        order = torch.argsort(expert_of, stable=True)
        counts = torch.bincount(expert_of, minlength=self.num_experts)
        recv = torch.empty_like(counts)
        dist.all_to_all_single(recv, counts, group=self.group)
        in_splits = counts.view(self.ep_size, self.local).sum(1).tolist()
        recv = recv.view(self.ep_size, self.local)
        out_splits = recv.sum(1).tolist()

        tokens = _AllToAll.apply(flat[order], out_splits, in_splits, self.group)
        owner = torch.cat([torch.repeat_interleave(torch.arange(self.local), row) for row in recv])
        out = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            idx = (owner == i).nonzero().squeeze(1)
            if idx.numel() == 0:
                continue
            out = out.index_copy(0, idx, expert(tokens[idx]))
        back = _AllToAll.apply(out, in_splits, out_splits, self.group)
        inverse = torch.argsort(order)
        return back[inverse].view_as(x)
