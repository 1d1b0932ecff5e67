import time

import torch
from torch.utils.data import Dataset


class Reviews(Dataset):
    def __init__(self, n=60_000, vocab=500, length=20):
        self.n, self.vocab, self.length = n, vocab, length

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        ids = torch.randint(0, self.vocab, (self.length,), generator=gen)
        return {"ids": ids, "label": (ids % 2).sum() % 2}


class StagedBatch:
    """A batch in staging memory, which goes back to the pool with the batch."""

    def __init__(self, tensors, telemetry):
        self.tensors = tensors
        self.telemetry = telemetry
        self.staged_at = time.time()
        self.hooks = {"ids": self.as_ids, "label": self.as_label}

    def as_ids(self):
        return self.tensors["ids"]

    def as_label(self):
        return self.tensors["label"]

    def get(self, key):
        return self.hooks[key]()

    def __del__(self):
        self.telemetry.emit("staging", held=time.time() - self.staged_at)


def stage(loader, telemetry):
    for tensors in loader:
        yield StagedBatch(tensors, telemetry)
