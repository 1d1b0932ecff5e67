import torch
from torch.utils.data import DataLoader, Dataset

TASKS = {"tag": 12, "intent": 20, "rate": 1}


class TaskData(Dataset):
    def __init__(self, name, n=20000, length=24):
        self.name, self.n, self.length = name, n, length

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        ids = torch.randint(0, 300, (self.length,), generator=torch.Generator().manual_seed(i))
        if self.name == "tag":
            return ids, ids % 12
        if self.name == "intent":
            return ids, ids.sum() % 20
        return ids, ids.float().mean() / 150 - 1


def endless(name, rank, world, bs=24):
    epoch = 0
    while True:
        idx = torch.randperm(20000, generator=torch.Generator().manual_seed(epoch))[rank::world]
        sub = torch.utils.data.Subset(TaskData(name), idx.tolist())
        yield from DataLoader(sub, bs, num_workers=1, drop_last=True, persistent_workers=False, multiprocessing_context="fork")
        epoch += 1
