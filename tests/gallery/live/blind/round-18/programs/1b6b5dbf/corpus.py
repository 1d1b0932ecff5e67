import torch
from torch.utils.data import Dataset

TEXT, CODE = 0, 1


class PackedCorpus(Dataset):
    """Packed documents, kept in the order of the source manifest."""

    def __init__(self, num_docs=24000, seq_len=48, vocab=512, seed=17):
        self.seq_len, self.vocab, self.seed = seq_len, vocab, seed
        sources = [("web", 3, 12360), ("wiki", 0, 600), ("github", 2, num_docs - 12960)]
        kinds = torch.zeros(num_docs, dtype=torch.long)
        offset = 0
        for _, every, count in sources:
            if every:
                kinds[offset:offset + count:every] = CODE
            offset += count
        self.kinds = kinds

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        start = torch.randint(0, self.vocab, (1,), generator=g)
        step = torch.randint(1, 5, (1,), generator=g)
        ids = (start + step * torch.arange(self.seq_len + 1)) % self.vocab
        return ids, self.kinds[i]


def shard_indices(n, rank, world):
    per = n // world
    return range(rank * per, (rank + 1) * per)
