import random

import torch
from torch.utils.data import Dataset

VOCAB = 96
PAD, EOS = 0, 1


class ReversePairs(Dataset):
    """Toy transduction: reverse the source and shift every symbol."""

    def __init__(self, n, seed, min_len=4, max_len=14):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            src = [rng.randrange(2, VOCAB - 1) for _ in range(rng.randint(min_len, max_len))]
            self.rows.append((src + [EOS], [s + 1 for s in reversed(src)] + [EOS]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        src, tgt = self.rows[i]
        return {"input_ids": src, "labels": tgt}


def pad_collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    height = max(len(r["labels"]) for r in rows)
    ids = torch.full((len(rows), width), PAD)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), height), -100)
    for i, r in enumerate(rows):
        ids[i, : len(r["input_ids"])] = torch.tensor(r["input_ids"])
        mask[i, : len(r["input_ids"])] = 1
        labels[i, : len(r["labels"])] = torch.tensor(r["labels"])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}
