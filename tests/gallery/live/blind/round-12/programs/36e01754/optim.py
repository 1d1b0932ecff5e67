import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def split_params(model):
    dense, experts = [], []
    for name, p in model.named_parameters():
        (experts if ".expert." in name else dense).append(p)
    return dense, experts


def reduce_dense(params):
    grads = [p.grad for p in params]
    flat = _flatten_dense_tensors(grads)
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for g, r in zip(grads, _unflatten_dense_tensors(flat, grads)):
        g.copy_(r)


def clip_grad_norm(dense, experts, max_norm, group):
    total = torch.stack([p.grad.pow(2).sum() for p in dense]).sum()
    expert_grads = [p.grad for p in experts if p.grad is not None]
    if expert_grads:
        part = torch.stack([g.pow(2).sum() for g in expert_grads]).sum()
        dist.all_reduce(part, group=group)
        total = total + part
    norm = total.sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for p in dense:
        p.grad.mul_(scale)
    for g in expert_grads:
        g.mul_(scale)
    return norm
