import random

import numpy as np
import torch
from torch.utils.data import Dataset


def scan_records(n, seed=0):
    """One record for each annotated crop of the study."""
    rng = random.Random(seed)
    return [{"case": f"case_{i // 12:05d}", "slice": i % 12, "seed": rng.randrange(1 << 30),
             "box": (rng.randrange(64), rng.randrange(64), 48, 48), "site": rng.choice("abcdef")}
            for i in range(n)]


class CropDataset(Dataset):
    """Crops listed in a record table that all processes of the node share."""

    def __init__(self, shared):
        self.shared = shared
        self.count = len(shared.records)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        record = self.shared.records[i]
        rng = np.random.default_rng(record["seed"])
        crop = rng.normal(size=(4, 48, 48)).astype(np.float32)
        x, y, w, h = record["box"]
        mask = np.zeros((48, 48), dtype=np.int64)
        mask[y // 4:(y + h) // 4, x // 4:(x + w) // 4] = 1
        crop[0] += mask
        return torch.from_numpy(crop), torch.from_numpy(mask)
