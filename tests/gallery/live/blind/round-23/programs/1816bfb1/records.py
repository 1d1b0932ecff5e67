import random

import torch
from datasets import Dataset


def build(rows, seed):
    rnd = random.Random(seed)

    def gen_rows():
        for i in range(rows):
            n = rnd.randint(6, 40)
            yield {"input_ids": [(i + 3 * k) % 90 + 1 for k in range(n)]}

    items = list(gen_rows())
    return Dataset.from_dict({"input_ids": [r["input_ids"] for r in items]})


def collate(rows, multiple=8):
    longest = max(len(r["input_ids"]) for r in rows)
    width = -(-longest // multiple) * multiple
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, :len(r["input_ids"])] = torch.tensor(r["input_ids"])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": ids.masked_fill(ids == 0, -100)}
