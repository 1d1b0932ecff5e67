import torch
import torch.distributed as dist


@torch.no_grad()
def clip_expert_grads(parameters, max_norm):
    """Clip rank-local expert parameters by their norm over all ranks."""
    grads = [p.grad for p in parameters if p.grad is not None]
    if len(grads) == 0:
        return torch.tensor(0.0)
    total = torch.stack([g.float().pow(2).sum() for g in grads]).sum()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    total = total.sqrt()
    coef = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(coef)
    return total
