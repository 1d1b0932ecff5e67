import random

import torch


class ClipReader:
    """Frames of the clips of one rank, cut into windows and grouped to batches."""

    def __init__(self, clips, rank, world, seed, window=8, batch=8, features=40):
        rng = random.Random(seed)
        lengths = [rng.randint(9, 40) for _ in range(clips)]
        self.lengths = lengths[rank::world]
        self.window, self.batch, self.features = window, batch, features
        self.gen = torch.Generator().manual_seed(seed * 31 + rank)

    def windows(self):
        for length in self.lengths:
            frames = torch.randn(length, self.features, generator=self.gen).cumsum(0)
            for i in range(length - self.window):
                yield frames[i:i + self.window], frames[i + self.window]

    def __len__(self):
        return sum(n - self.window for n in self.lengths) // self.batch

    def __iter__(self):
        xs, ys = [], []
        for x, y in self.windows():
            xs.append(x)
            ys.append(y)
            if len(xs) == self.batch:
                yield torch.stack(xs), torch.stack(ys)
                xs, ys = [], []
