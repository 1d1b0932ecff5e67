"""Autograd functions around the shared trunk (model-parallel style regions)."""
import torch
import torch.distributed as dist


class _CopyToHead(torch.autograd.Function):
    """Identity on the way up; on the way down the trunk gets the mean of all replicas' head gradients."""

    @staticmethod
    def forward(ctx, h, group):
        ctx.group = group
        return h.view_as(h)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad / dist.get_world_size(ctx.group), None


class _GatherLogits(torch.autograd.Function):
    """Concatenates the logits of all replicas, keeps the own slice of the gradient."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.rank, ctx.n = dist.get_rank(group), x.shape[0]
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.rank * ctx.n : (ctx.rank + 1) * ctx.n], None


def copy_to_head(h, group):
    return _CopyToHead.apply(h, group)


def gather_logits(x, group):
    return _GatherLogits.apply(x, group)
