import os

import torch


def ensure_shards(folder, n=44, rows=96):
    os.makedirs(folder, exist_ok=True)
    for i in range(n):
        path = os.path.join(folder, f"shard-{i:06d}.pt")
        if not os.path.exists(path):
            tmp = f"{path}.{os.getpid()}"
            torch.save((torch.randn(rows, 30), torch.randint(0, 12, (rows,))), tmp)
            os.replace(tmp, path)


class ShardFeeder:
    """Hands out the shards of one task, a few per iteration, as long as there are any."""

    def __init__(self, folder, rank, world, per_iteration=1):
        names = sorted(n for n in os.listdir(folder) if n.endswith(".pt"))
        per = -(-len(names) // world)
        self.todo = [os.path.join(folder, n) for n in names[rank * per:(rank + 1) * per]]
        self.per_iteration = per_iteration

    def next(self):
        batch, self.todo = self.todo[: self.per_iteration], self.todo[self.per_iteration:]
        return batch
