import os

import torch


class ShardStream:
    """Endless stream of rows. Small shards are read at once, large ones line by line."""

    def __init__(self, root, rank, batch=16, in_memory_limit=512 << 10):
        folder = os.path.join(root, f"part-{rank}")
        self.paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        self.batch = batch
        self.in_memory_limit = in_memory_limit
        self.shard = -1
        self.row = 0
        self.reader = iter(())

    def _open_next(self):
        self.shard = (self.shard + 1) % len(self.paths)
        self.row = 0
        path = self.paths[self.shard]
        if os.path.getsize(path) <= self.in_memory_limit:
            with open(path) as f:
                self.reader = iter(f.readlines())
        else:
            self.reader = open(path)

    def _next_row(self):
        while True:
            line = next(self.reader, None)
            if line is not None:
                self.row += 1
                return [int(t) for t in line.split()]
            self._open_next()

    def __iter__(self):
        while True:
            rows = torch.tensor([self._next_row() for _ in range(self.batch)])
            yield rows[:, :-1], rows[:, 1:]

    def state_dict(self):
        return dict(self.__dict__)
