import torch.multiprocessing as mp
from torch.utils.data import DataLoader


def build(labelled, unlabelled):
    supervised = DataLoader(labelled, 64, num_workers=32)
    self_supervised = DataLoader(unlabelled, 448, num_workers=32)
    return supervised, self_supervised


def worker(rank, labelled, unlabelled):
    supervised, self_supervised = build(labelled, unlabelled)
    for epoch in range(200):
        for (x, y), u in zip(supervised, self_supervised):
            print(rank, epoch, x, y, u)


if __name__ == "__main__":
    mp.spawn(worker, args=([], []), nprocs=4)
