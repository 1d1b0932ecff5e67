import random

import torch

from pipes.core import Pipe, Wrapper


class FrameSlicer(Pipe):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        for vid, start, end in self.source:
            for i in range(start, end):
                yield vid, i


def decode(item):
    vid, i = item
    g = torch.Generator().manual_seed(vid * 977 + i)
    return torch.randn(3, 16, 16, generator=g), torch.tensor((vid * 7 + i) % 6)


def collate(rows):
    x, y = zip(*rows)
    return torch.stack(x), torch.stack(y)


def build(rank, world, batch, prefetch, videos=64):
    rng = random.Random(10)
    entries = [(v, 10, 10 + rng.randint(12, 18)) for v in range(videos)]
    pipe = FrameSlicer(Wrapper(entries)).shuffle(64, seed=2).shard(rank, world).map(decode)
    return pipe.batch(batch, collate).prefetch(prefetch), sum(e - s for _, s, e in entries)
