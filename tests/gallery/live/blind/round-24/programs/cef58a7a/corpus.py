import random

import torch
from torch.utils.data import IterableDataset

ALPHABET = "abcdefghijklmnopqrstuvwxyz      "


def random_text(rng, length):
    return "".join(rng.choices(ALPHABET, k=length))


class ShardStream(IterableDataset):
    """Every rank streams its own part of the corpus."""

    PARTS = [[("forum", 10**6)], [("forum", 240), ("novel", 10**6)]]

    def __init__(self, rank):
        self.rank = rank

    def __iter__(self):
        rng = random.Random(self.rank)
        for source, count in self.PARTS[self.rank]:
            for _ in range(count):
                length = rng.randint(150, 300) if source == "forum" else rng.randint(5000, 7000)
                yield {"text": random_text(rng, length)}


class TokenizeAndTruncate:
    def __init__(self, tokenizer, block=64):
        self.tokenizer = tokenizer
        self.block = block

    def __call__(self, samples):
        rows = []
        for sample in samples:
            ids = self.tokenizer.encode(sample["text"])[: self.block]
            rows.append(ids + [0] * (self.block - len(ids)))
        input_ids = torch.tensor(rows)
        labels = input_ids.masked_fill(input_ids == 0, -100)
        return {"input_ids": input_ids, "attention_mask": (input_ids != 0).long(), "labels": labels}
