import fcntl

import torch.distributed as dist


def build(x):
    f = open("/tmp/build.lock", "w")
    fcntl.flock(f, fcntl.LOCK_EX)
    dist.all_reduce(x)
    fcntl.flock(f, fcntl.LOCK_UN)
    return x


dist.init_process_group("gloo")
