import torch.multiprocessing as mp

from roles import entry

if __name__ == "__main__":
    mp.spawn(entry, args=(3,), nprocs=3)
