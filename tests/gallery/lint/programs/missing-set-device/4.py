import torch
from torch.distributed import all_reduce, init_process_group
from torch.multiprocessing import spawn


def worker(rank, world):
    init_process_group("nccl", rank=rank, world_size=world)
    t = torch.ones(1, device="cuda")
    all_reduce(t)


if __name__ == "__main__":
    spawn(worker, args=(2,), nprocs=2)
