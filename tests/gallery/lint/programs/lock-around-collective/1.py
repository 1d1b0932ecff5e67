import torch.distributed as dist
from filelock import FileLock


def load(path, x):
    with FileLock(path + ".lock"):
        dist.barrier()
        return x


dist.init_process_group("gloo")
