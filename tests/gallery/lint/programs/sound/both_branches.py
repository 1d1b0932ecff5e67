import torch
import torch.distributed as dist


def share(obj):
    if dist.get_rank() == 0:
        t = torch.tensor([obj])
        dist.broadcast(t, src=0)
    else:
        t = torch.zeros(1)
        dist.broadcast(t, src=0)
    return t


dist.init_process_group("gloo")
