import random

import torch
from torch.utils.data import IterableDataset

from bpe import Bpe

WORDS = ["tide", "harbour", "lantern", "rivers", "carry", "the", "northern", "of", "stone", "walked", "under",
         "bridge", "morning", "a", "kept", "every", "letter", "window", "quiet", "road", "and", "machine"]


class TextStream(IterableDataset):
    """Endless text, tokenised on the fly and packed into rows of `length` tokens."""

    def __init__(self, length=128, seed=0):
        self.length, self.seed = length, seed
        self.bpe = Bpe.learn(self._documents(random.Random(seed), 60), merges=320)

    @staticmethod
    def _documents(rng, n=None):
        k = 0
        while n is None or k < n:
            yield " ".join(rng.choices(WORDS, k=rng.randint(40, 120)))
            k += 1

    def __iter__(self):
        row = []
        for text in self._documents(random.Random(self.seed + 1)):
            row.extend(self.bpe.encode(text))
            while len(row) >= self.length:
                yield {"input_ids": torch.tensor(row[: self.length])}
                row = row[self.length :]
