import time

import torch
from torch.utils.data import Dataset, IterableDataset


class LogLines(IterableDataset):
    """Streams synthetic log lines; opening the next shard takes a moment."""

    def __init__(self, shards=400, per_shard=600, length=24):
        self.shards, self.per_shard, self.length = shards, per_shard, length

    def __iter__(self):
        for shard in range(self.shards):
            g = torch.Generator().manual_seed(shard)
            time.sleep(1.5 if shard % 3 else 4.0)
            for _ in range(self.per_shard):
                start = torch.randint(0, 90, (1,), generator=g)
                ids = (start + torch.arange(self.length) * 3) % 96
                yield {"input_ids": ids, "labels": ids.clone()}


class HeldOut(Dataset):
    def __init__(self, count=50):
        g = torch.Generator().manual_seed(99)
        self.rows = []
        for _ in range(count):
            n = int(torch.randint(8, 40, (1,), generator=g))
            self.rows.append((torch.randint(0, 90, (1,), generator=g) + torch.arange(n) * 3) % 96)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        time.sleep(0.002 * len(self.rows[i]))
        return {"input_ids": self.rows[i], "labels": self.rows[i].clone()}


def pad_collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), -100)
    for k, r in enumerate(rows):
        ids[k, :len(r["input_ids"])] = r["input_ids"]
        labels[k, :len(r["labels"])] = r["labels"]
    return {"input_ids": ids, "attention_mask": (labels != -100).long(), "labels": labels}
