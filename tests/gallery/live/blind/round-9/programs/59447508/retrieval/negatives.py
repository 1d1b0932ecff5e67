import random


class NegativePool:
    """Passages seen so far, reused as hard negatives."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.items = []

    def push(self, ids, passages, emb):
        for i, p, e in zip(ids, passages, emb):
            self.items.append((i, p, e.detach().expand(len(p), -1).clone()))

    def sample(self, k):
        return self.rng.sample(self.items, min(k, len(self.items)))
