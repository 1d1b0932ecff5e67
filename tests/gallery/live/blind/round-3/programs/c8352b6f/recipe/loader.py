import torch


class AudioShard:
    """The rank's contiguous part of the manifest, without clips outside of [min_s, max_s]."""

    def __init__(self, items, rank, world, min_s=1.0, max_s=15.0):
        per = len(items) // world
        mine = items[rank * per:(rank + 1) * per]
        self.items = [x for x in mine if min_s <= x["duration"] <= max_s]

    def batches(self, size, epoch):
        g = torch.Generator().manual_seed(epoch)
        order = torch.randperm(len(self.items), generator=g).tolist()
        for i in range(0, len(order) - size + 1, size):
            idx = order[i:i + size]
            t = int(max(self.items[j]["duration"] for j in idx) * 10)
            yield torch.randn(size, t, 24, generator=g), torch.randint(0, 30, (size, t), generator=g)
