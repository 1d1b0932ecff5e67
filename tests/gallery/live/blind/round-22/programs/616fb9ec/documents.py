import random
import time

import torch
from torch.utils.data import Dataset

WORDS = 300


class Documents(Dataset):
    """Documents of varying length; now and then one has to be cleaned first."""

    def __init__(self, n, seed, cleaning=0.0):
        self.n, self.seed, self.cleaning = n, seed, cleaning

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = random.Random(self.seed * 1_000_003 + i)
        if rng.random() < 0.02:
            time.sleep(self.cleaning)
        length = rng.randint(8, 48)
        start, stride = rng.randrange(WORDS), rng.randrange(1, 5)
        return {"input_ids": [(start + stride * k) % WORDS for k in range(length)]}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, f in enumerate(features):
        ids[row, : len(f["input_ids"])] = torch.tensor(f["input_ids"])
        mask[row, : len(f["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}
