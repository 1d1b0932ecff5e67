import torch
from torch.utils.data import Dataset

VOCAB, TAGS = 400, 8


class SpanDataset(Dataset):
    """Token sequences with a tag per token: short titles and, for every third row or so, a long abstract."""

    def __init__(self, n, seed, noise=0.02, by_length=False):
        g = torch.Generator().manual_seed(seed)
        table = torch.randint(0, TAGS, (VOCAB,), generator=torch.Generator().manual_seed(7))
        self.rows = []
        for _ in range(n):
            low, high = (18, 32) if torch.rand(1, generator=g).item() < 0.33 else (2, 5)
            length = int(torch.randint(low, high, (1,), generator=g))
            ids = torch.randint(1, VOCAB, (length,), generator=g)
            tags = table[ids].clone()
            flip = torch.rand(length, generator=g) < noise
            tags[flip] = torch.randint(0, TAGS, (int(flip.sum()),), generator=g)
            self.rows.append((ids, tags))
        if by_length:  # less padding
            self.rows.sort(key=lambda r: len(r[0]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, tags = self.rows[i]
        return {"input_ids": ids, "labels": tags}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), -100)
    for k, r in enumerate(rows):
        ids[k, : len(r["input_ids"])] = r["input_ids"]
        labels[k, : len(r["labels"])] = r["labels"]
    return {"input_ids": ids, "labels": labels}
