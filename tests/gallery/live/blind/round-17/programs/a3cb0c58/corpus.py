import time

import torch
from torch.utils.data import Dataset


class TokenBlocks(Dataset):
    """Synthetic corpus of arithmetic sequences; long documents are cut from a file-like store."""

    def __init__(self, n, block=64, vocab=200, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.start = torch.randint(0, vocab, (n,), generator=gen)
        self.stride = torch.randint(1, 9, (n,), generator=gen)
        self.block, self.vocab = block, vocab

    def __len__(self):
        return len(self.start)

    def __getitem__(self, i):
        if i % 50 == 0:
            time.sleep(0.01)
        ids = (self.start[i] + self.stride[i] * torch.arange(self.block)) % self.vocab
        return {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}
