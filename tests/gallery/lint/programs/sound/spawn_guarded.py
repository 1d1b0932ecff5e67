import torch.multiprocessing as mp


def worker(rank, n):
    print(rank, n)


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
