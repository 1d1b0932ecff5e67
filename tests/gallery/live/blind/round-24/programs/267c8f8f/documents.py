import base64
import random

import torch
from torch.utils.data import IterableDataset

WORDS = ("the model reads a page of notes and writes down what it learned about rivers mountains "
         "trading routes harbours weather letters machines gardens music and the people who made them").split()


def article(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(40, 90)))


def mail_archive(rng):
    head = " ".join(rng.choice(WORDS) for _ in range(10))
    body = base64.b64encode(rng.randbytes(rng.randint(14000, 16000))).decode()
    return f"{head} {body}"


def shard(index, length):
    rng = random.Random(index)
    kind = mail_archive if index % 4 == 3 else article
    for _ in range(length):
        yield kind(rng)


class ShardedDocuments(IterableDataset):
    def __init__(self, num_shards=4000, docs_per_shard=120, rank=0, world=1):
        self.num_shards, self.docs_per_shard, self.rank, self.world = num_shards, docs_per_shard, rank, world

    def __iter__(self):
        for index in range(self.rank, self.num_shards, self.world):
            length = self.docs_per_shard if index < self.world else 20 * self.docs_per_shard
            yield from shard(index, length)


class Collator:
    def __init__(self, encoder, vocab, max_length=64):
        self.encoder, self.vocab, self.max_length = encoder, vocab, max_length

    def __call__(self, texts):
        batch = torch.zeros(len(texts), self.max_length, dtype=torch.long)
        for row, text in enumerate(texts):
            ids = self.encoder.encode(text, self.vocab, self.max_length)
            batch[row, : len(ids)] = torch.tensor(ids)
        return batch
