import random

from datasets import Dataset


def build_pairs(n, seed):
    rng = random.Random(seed)
    q = [rng.randrange(4096) for _ in range(n)]
    d = [x if rng.random() < 0.5 else rng.randrange(4096) for x in q]
    return Dataset.from_dict({"query": q, "doc": d, "label": [int(a == b) for a, b in zip(q, d)]})
