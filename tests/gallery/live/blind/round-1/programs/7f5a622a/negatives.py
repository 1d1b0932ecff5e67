import gc
import random


class NegativeBank:
    """Hard negatives per query, kept in memory for the whole run."""

    def __init__(self, n_queries, per_query, n_docs, seed):
        rng = random.Random(seed)
        self.table = {
            q: [(rng.randrange(n_docs), rng.random()) for _ in range(per_query)] for q in range(n_queries)
        }

    def __len__(self):
        return sum(len(v) for v in self.table.values())

    def sample(self, q, k):
        return [d for d, _ in random.choices(self.table[q % len(self.table)], k=k)]


def release_host_memory():
    gc.collect()
