import torch
import torch.distributed as dist


def get_grad_norm_fp32(parameters, data_parallel_group, model_parallel_group, norm_type=2.0):
    grads_for_norm = [p.grad.detach().float() for p in parameters if p.grad is not None]
    if not grads_for_norm:
        return 0.0
    total = torch.zeros(1)
    for grad in grads_for_norm:
        total += torch.linalg.vector_norm(grad, norm_type) ** norm_type
    dist.all_reduce(total, group=model_parallel_group)
    return total.item() ** (1.0 / norm_type)


def clip_by_norm(parameters, max_norm, total_norm):
    scale = max_norm / (total_norm + 1e-6)
    if scale < 1.0:
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(scale)


def reduce_gradients(parameters, data_parallel_group):
    grads = [p.grad for p in parameters if p.grad is not None]
    if not grads:
        return
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat, group=data_parallel_group)
    flat /= dist.get_world_size(data_parallel_group)
    offset = 0
    for g in grads:
        g.copy_(flat[offset:offset + g.numel()].view_as(g))
        offset += g.numel()
