import logging

import torch

log = logging.getLogger("collate")


class PackedBatches:
    def __init__(self, rank, batch=16, max_len=64):
        self.g = torch.Generator().manual_seed(100 + rank)
        self.batch, self.max_len = batch, max_len

    def __iter__(self):
        while True:
            lens = torch.randint(8, self.max_len, (self.batch,), generator=self.g)
            x = torch.zeros(self.batch, self.max_len, dtype=torch.long)
            for i, n in enumerate(lens.tolist()):
                x[i, :n] = torch.randint(1, 4000, (n,), generator=self.g)
            log.debug("packed lengths=%s padding=%.3f", lens.tolist(),
                      1 - lens.sum().item() / (self.batch * self.max_len))
            yield x, torch.randint(0, 4000, (self.batch,), generator=self.g)
