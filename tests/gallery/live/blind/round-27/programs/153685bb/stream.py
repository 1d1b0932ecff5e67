import time

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class TokenStream(IterableDataset):
    """Endless packed token windows; each worker of each rank has its own seed."""

    def __init__(self, rank, window=32, limit=None, io_delay=0.02):
        self.rank, self.window, self.limit, self.io_delay = rank, window, limit, io_delay

    def __iter__(self):
        info = get_worker_info()
        wid = info.id if info else 0
        g = torch.Generator().manual_seed(97 * self.rank + wid)
        n = 0
        while self.limit is None or n < self.limit:
            if n % 160 == 159:
                time.sleep(1.5)
            time.sleep(self.io_delay)
            yield torch.randint(0, 256, (self.window + 1,), generator=g)
            n += 1


def loaders(rank):
    train = DataLoader(TokenStream(rank), batch_size=4, num_workers=2, prefetch_factor=4, persistent_workers=True)
    val = DataLoader(TokenStream(rank + 1000, limit=24), batch_size=4, num_workers=1, persistent_workers=True)
    return train, val
