import pathlib

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ROOT = pathlib.Path("out")


def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    if rank == 0:
        print("saving")
    torch.save(torch.rand(3), ROOT / "w.pt")


if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
