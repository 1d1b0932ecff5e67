import torch.distributed as dist


def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


def synchronize():
    if not dist.is_initialized():
        return
    if dist.get_world_size() == 1:
        return
    dist.barrier()
