import random

import torch

NAMES = "ada grace alan edsger barbara donald john leslie tony robin".split()
VERBS = "wrote proved measured printed compiled sorted merged cached".split()
THINGS = "a table a list the kernel two stacks the heap a parser one queue".split()


class Lines(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = [f"{rng.choice(NAMES)} {rng.choice(VERBS)} {' '.join(rng.sample(THINGS, 4))}." for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": [ord(c) for c in self.rows[i]]}


def collate(items):
    t = max(len(x["input_ids"]) for x in items)
    ids = torch.zeros(len(items), t, dtype=torch.long)
    labels = torch.full((len(items), t), -100)
    for i, x in enumerate(items):
        n = len(x["input_ids"])
        ids[i, :n] = labels[i, :n] = torch.tensor(x["input_ids"])
    return {"input_ids": ids, "labels": labels, "attention_mask": (ids > 0).long()}
