import numpy as np
import torch


class PassageShard:
    """Queries with one positive passage each; every rank reads its own shard of the crawl."""

    def __init__(self, rank, vocab=4000, n=6000):
        self.rng = np.random.default_rng(100 + rank)
        self.vocab = vocab
        median = [60, 64, 420][rank % 3]
        self.lengths = np.clip(self.rng.lognormal(np.log(median), 0.35, size=n), 16, 4096).astype(int)
        self.ids = self.rng.integers(0, n, size=10**6)
        self.pos = 0

    def batch(self, size):
        take = self.ids[self.pos : self.pos + size]
        self.pos = (self.pos + size) % (len(self.ids) - size)
        queries = torch.from_numpy(self.rng.integers(1, self.vocab, size=(size, 24)))
        passages = [torch.from_numpy(self.rng.integers(1, self.vocab, size=self.lengths[i])) for i in take]
        return take.tolist(), queries, passages
