import torch.distributed as dist


def download(get):
    rank = dist.get_rank()
    if rank == 0:
        get()
    dist.barrier()
    if rank != 0:
        get()


dist.init_process_group("gloo")
