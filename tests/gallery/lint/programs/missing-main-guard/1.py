import torch
import torch.multiprocessing as mp


def worker(rank):
    print(rank)


mp.spawn(worker, nprocs=4)
