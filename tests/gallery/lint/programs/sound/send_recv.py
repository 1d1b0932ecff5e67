import torch
import torch.distributed as dist


def pipe(x):
    if dist.get_rank() == 0:
        dist.send(x, dst=1)
    elif dist.get_rank() == 1:
        dist.recv(x, src=0)
    return x


dist.init_process_group("gloo")
