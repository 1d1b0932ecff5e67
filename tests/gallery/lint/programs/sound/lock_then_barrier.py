import torch.distributed as dist
from filelock import FileLock


def load(build):
    with FileLock("x.lock"):
        path = build()
    dist.barrier()
    return path


dist.init_process_group("gloo")
