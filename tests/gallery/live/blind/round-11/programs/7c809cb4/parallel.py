import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def build_mesh(tp):
    world = dist.get_world_size()
    return init_device_mesh("cpu", (world // tp, tp), mesh_dim_names=("dp", "tp"))


def apply_tp(model, tp_mesh):
    for block in model.blocks:
        parallelize_module(block, tp_mesh, {
            "wq": ColwiseParallel(),
            "wk": ColwiseParallel(),
            "wv": ColwiseParallel(),
            "wo": RowwiseParallel(),
            "ff.w1": ColwiseParallel(),
            "ff.w2": RowwiseParallel(),
        })
    return model


def sync_grads(model, dp_mesh):
    group, n = dp_mesh.get_group(), dp_mesh.size()
    for p in model.parameters():
        if p.grad is None:
            continue
        g = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
        dist.all_reduce(g, group=group)
        g.div_(n)
