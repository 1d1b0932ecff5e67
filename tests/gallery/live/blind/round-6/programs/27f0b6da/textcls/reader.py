import random

import torch


class ReviewReader:
    """Reads one slice of the review collection per worker."""

    def __init__(self, vocab=400, seq=24, seed=13):
        self.vocab, self.seq, self.seed = vocab, seq, seed

    def _instance(self, rng, quality):
        y = rng.random() < 0.5
        lo, hi = (0, self.vocab // 2) if y else (self.vocab // 2, self.vocab)
        toks = [rng.randrange(lo, hi) if rng.random() < quality else rng.randrange(self.vocab)
                for _ in range(self.seq)]
        return toks, int(y)

    def read(self, split, worker, num_workers, count):
        rng = random.Random(f"{self.seed}-{split}-{worker}")
        quality = 0.12 + 0.1 * worker / max(1, num_workers - 1)
        if split == "train":
            quality = 0.2
        xs, ys = zip(*(self._instance(rng, quality) for _ in range(count)))
        return torch.tensor(xs), torch.tensor(ys)


def batches(data, size, gen=None):
    xs, ys = data
    order = torch.randperm(len(xs), generator=gen) if gen is not None else torch.arange(len(xs))
    for i in range(0, len(xs) - size + 1, size):
        ix = order[i:i + size]
        yield xs[ix], ys[ix]
