import torch


class ClientShards:
    """Sessions per client. A client's share differs from day to day; over the
    days every rank sees about the same number."""

    BASE = (18, 24, 30)

    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def day(self, day):
        count = self.BASE[(self.rank + day) % self.world]
        gen = torch.Generator().manual_seed(day * 97 + self.rank)
        for _ in range(count):
            x = torch.randn(12, 20, generator=gen)
            yield x, x[:, :3].sum(1, keepdim=True)
