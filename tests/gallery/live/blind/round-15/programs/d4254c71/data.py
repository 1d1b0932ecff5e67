import json

import torch
from torch.utils.data import Dataset

TAGS = ["B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "O"]
TAG_ID = {t: i for i, t in enumerate(TAGS)}


class TagDataset(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    n = max(len(r["tokens"]) for r in rows)
    ids = torch.zeros(len(rows), n, dtype=torch.long)
    tags = torch.full((len(rows), n), -100)
    for k, r in enumerate(rows):
        ids[k, : len(r["tokens"])] = torch.tensor(r["tokens"]) + 1
        tags[k, : len(r["tags"])] = torch.tensor([TAG_ID[t] for t in r["tags"]])
    return ids, tags
