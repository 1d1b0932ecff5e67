import numpy as np
import torch


class ClickLog:
    """One rank's part of a day of clicks, hashed by user id."""

    def __init__(self, rank, world, rows=3000, per_day=3200, batch=16, seed=5):
        self.rank, self.world, self.rows = rank, world, rows
        self.per_day, self.batch, self.seed = per_day, batch, seed

    def day(self, d):
        rng = np.random.default_rng(self.seed + d)
        users = rng.integers(0, 10_000, self.per_day)
        mine = users[users % self.world == self.rank]
        for i in range(0, len(mine) - self.batch + 1, self.batch):
            items = rng.integers(0, self.rows, (self.batch, 4))
            yield torch.from_numpy(items), torch.from_numpy((mine[i:i + self.batch] % 2).astype("float32"))
