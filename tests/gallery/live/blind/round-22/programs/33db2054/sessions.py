import random

import torch


class SessionBatches:
    """Sessions in length buckets; a worker draws whole batches from one bucket at a time."""

    def __init__(self, rank, items, token_budget=160):
        self.rng = random.Random(17 * rank + 3)
        self.items, self.token_budget = items, token_budget
        self.lengths = [4, 8, 16, 32]

    def __iter__(self):
        while True:
            length = self.rng.choice(self.lengths)
            count = max(1, self.token_budget // length)
            ids = torch.tensor([[self.rng.randrange(self.items) for _ in range(length)] for _ in range(count)])
            clicked = (ids[:, -1] + ids[:, 0]) % 2
            yield ids, clicked.float(), 0.004 * length
