import torch.multiprocessing

from job import worker


def main():
    torch.multiprocessing.spawn(worker, args=(1,), nprocs=2)


main()
