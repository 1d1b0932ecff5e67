"""Corpus index: one source per data-parallel rank, spans kept in memory."""
import random

import torch
from torch.utils.data import IterableDataset

SOURCES = [("books", 30_000), ("crawl", 2_200_000), ("code", 45_000)]


def build_index(name, count):
    index = []
    for i in range(count):
        start = 512 * i
        index.append({"id": i, "span": [start, start + 512], "tags": [name, [i & 7]]})
    return index


class SpanDataset(IterableDataset):
    def __init__(self, rank, vocab, seq):
        name, count = SOURCES[rank % len(SOURCES)]
        self.index = build_index(name, count)
        self.vocab, self.seq = vocab, seq
        print(f"rank {rank}: source {name}, {count} spans", flush=True)

    def __iter__(self):
        rng = random.Random(0)
        while True:
            item = self.index[rng.randrange(len(self.index))]
            g = torch.Generator().manual_seed(item["span"][0])
            ids = torch.randint(0, self.vocab, (self.seq,), generator=g)
            yield {"input_ids": ids, "labels": ids}
