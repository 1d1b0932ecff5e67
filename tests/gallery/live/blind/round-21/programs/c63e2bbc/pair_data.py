import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class PairDataset(Dataset):
    def __init__(self, queries, passages, negatives):
        self.queries, self.passages, self.negatives = queries, passages, negatives

    def __len__(self):
        return len(self.queries)

    def __getitem__(self, i):
        neg = self.negatives[i, torch.randint(self.negatives.shape[1], (1,)).item()]
        return self.queries[i], self.passages[i], self.passages[neg]


def cycle(loader):
    epoch = 0
    while True:
        loader.sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def open_batches(dataset, rank, world_size, batch_size=16):
    sampler = DistributedSampler(dataset, world_size, rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler, num_workers=1,
                        persistent_workers=True, drop_last=True)
    batches = cycle(loader)
    return next(batches), batches
