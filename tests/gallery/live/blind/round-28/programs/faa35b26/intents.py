import random

import torch
from torch.utils.data import Dataset


class Intents(Dataset):
    """Short utterances with a few very long ones in between."""

    def __init__(self, n, seed, vocab=300, classes=5):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            label = rng.randrange(classes)
            size = rng.choice([6, 8, 10, 12, 48])
            ids = [rng.randrange(10, vocab) for _ in range(size)]
            ids[rng.randrange(size)] = 3 + label
            self.rows.append({"input_ids": ids, "labels": label})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for k, r in enumerate(rows):
        ids[k, : len(r["input_ids"])] = torch.tensor(r["input_ids"])
        mask[k, : len(r["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}
