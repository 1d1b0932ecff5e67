import multiprocessing

import torch.distributed as dist
from torch.utils import data

WORKERS = multiprocessing.cpu_count() - 1


def make(ds, sampler):
    return data.DataLoader(ds, 16, sampler=sampler, num_workers=WORKERS)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    return rank


if __name__ == "__main__":
    main()
