import torch
from torch.utils.data import Dataset


class ReverseText(Dataset):
    """Sequences of very different lengths to be written backwards."""

    def __init__(self, n, seed, vocab=120, longest=60):
        g = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(8, longest, (n,), generator=g)
        self.seed, self.vocab = seed, vocab

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 10**6 + i)
        ids = torch.randint(3, self.vocab, (int(self.lengths[i]),), generator=g)
        return {"input_ids": ids, "labels": torch.cat([ids.flip(0), torch.tensor([1])])}


def collate(rows):
    pad = lambda ts, v: torch.nn.utils.rnn.pad_sequence(ts, batch_first=True, padding_value=v)
    ids = pad([r["input_ids"] for r in rows], 0)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": pad([r["labels"] for r in rows], -100)}
