import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class AllToAll(torch.autograd.Function):
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


class GroupedExperts(nn.Module):
    def __init__(self, n_local, dim, hidden):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(n_local, dim, hidden) * dim**-0.5)
        self.w2 = nn.Parameter(torch.randn(n_local, hidden, dim) * hidden**-0.5)

    def forward(self, x, tokens_per_expert):
        if x.shape[0] == 0:
            return torch.empty_like(x)
        outs = []
        for i, chunk in enumerate(x.split(tokens_per_expert)):
            outs.append(F.gelu(chunk @ self.w1[i]) @ self.w2[i])
        return torch.cat(outs)


class MoELayer(nn.Module):
    """Top-1 token routing with experts spread over the expert-parallel group."""

    def __init__(self, dim, hidden, n_experts, ep_group):
        super().__init__()
        self.ep_group = ep_group
        self.ep_size = dist.get_world_size(ep_group)
        self.n_experts = n_experts
        self.n_local = n_experts // self.ep_size
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.experts = GroupedExperts(self.n_local, dim, hidden)

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        probs = self.router(x).softmax(-1)
        weight, expert = probs.max(-1)
        order = expert.argsort(stable=True)
        counts = torch.bincount(expert, minlength=self.n_experts)
        all_counts = torch.empty(self.ep_size * self.n_local, dtype=counts.dtype)
        dist.all_to_all_single(all_counts, counts, group=self.ep_group)
        recv = all_counts.view(self.ep_size, self.n_local)
        in_splits = counts.view(self.ep_size, self.n_local).sum(1).tolist()
        out_splits = recv.sum(1).tolist()

        dispatched = AllToAll.apply(x[order], out_splits, in_splits, self.ep_group)
        # rows arrive grouped by source rank; regroup them by local expert
        ids = torch.cat([torch.arange(self.n_local).repeat_interleave(recv[r]) for r in range(self.ep_size)])
        perm = ids.argsort(stable=True)
        local = self.experts(dispatched[perm], recv.sum(0).tolist())
        local = local[perm.argsort()]
        combined = AllToAll.apply(local, in_splits, out_splits, self.ep_group)

        out = combined[order.argsort()] * weight[:, None]
        return out.view(shape)
