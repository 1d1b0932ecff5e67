import contextlib

import torch.distributed as dist


@contextlib.contextmanager
def main_first(rank):
    if rank != 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


dist.init_process_group("gloo")
