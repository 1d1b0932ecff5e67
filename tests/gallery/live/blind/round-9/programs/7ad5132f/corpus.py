import torch
from torch.utils.data import Dataset


class Reviews(Dataset):
    def __init__(self, n, seed, vocab=1500, max_len=80, labels=4):
        g = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(20, max_len, (n,), generator=g).tolist()
        self.labels = torch.randint(0, labels, (n,), generator=g).tolist()
        self.vocab, self.seed = vocab, seed

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
        ids = torch.randint(10, self.vocab, (self.lengths[i],), generator=g)
        marks = torch.rand(self.lengths[i], generator=g) < 0.15
        ids[marks] = 2 + self.labels[i]
        return {"input_ids": ids, "label": self.labels[i]}


def collate(items):
    width = max(len(x["input_ids"]) for x in items)
    ids = torch.zeros(len(items), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for r, x in enumerate(items):
        n = len(x["input_ids"])
        ids[r, :n] = x["input_ids"]
        mask[r, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([x["label"] for x in items])}
