import random

import torch
from torch.utils.data import Dataset


class Prompts(Dataset):
    """Prompt ids with the number of new tokens to sample for each."""

    def __init__(self, size=6000, vocab=256, prompt_len=12, seed=1):
        rng = random.Random(seed)
        self.rows = []
        for i in range(size):
            ids = [rng.randrange(vocab) for _ in range(prompt_len)]
            new = rng.choice((16, 20, 24, 28))
            if i % 997 == 400:
                new = 64
            self.rows.append((ids, new))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, new = self.rows[i]
        return {"ids": torch.tensor(ids), "new": new}
