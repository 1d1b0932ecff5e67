import torch


class BucketedBatches:
    def __init__(self, rank, batch=8):
        self.g = torch.Generator().manual_seed(rank + 11)
        self.batch = batch

    def __iter__(self):
        while True:
            n = int(torch.randint(16, 400, (1,), generator=self.g))
            ids = torch.randint(0, 1500, (self.batch, n), generator=self.g)
            yield ids, ids.roll(-1, 1)
