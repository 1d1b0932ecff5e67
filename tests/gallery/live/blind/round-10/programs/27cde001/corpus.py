import torch
from torch.utils.data import Dataset

IGNORE = -100


class Instructions(Dataset):
    """Prompt and answer in one row, cut to `max_len`. Only answer tokens carry a label."""

    def __init__(self, n=9000, vocab=256, max_len=48, seed=1):
        self.n, self.vocab, self.max_len, self.seed = n, vocab, max_len, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 7_919_009 + i)
        prompt = int(torch.randint(8, 64, (1,), generator=g))
        answer = int(torch.randint(8, 32, (1,), generator=g))
        first = int(torch.randint(0, self.vocab, (1,), generator=g))
        ids = (first + 3 * torch.arange(prompt + answer)) % self.vocab
        labels = ids.clone()
        labels[:prompt] = IGNORE
        return ids[: self.max_len], labels[: self.max_len]


def collate(rows):
    width = max(len(r[0]) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), IGNORE)
    for k, (a, b) in enumerate(rows):
        ids[k, : len(a)] = a
        labels[k, : len(b)] = b
    return ids, labels
