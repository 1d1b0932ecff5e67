import torch.distributed as dist


def wait_all():
    dist.barrier()
