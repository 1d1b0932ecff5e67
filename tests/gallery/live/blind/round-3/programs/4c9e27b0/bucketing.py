import random


class LengthBuckets:
    """Sequence lengths are rounded up to a bucket; long buckets come in late in the curriculum."""

    def __init__(self, rank, base=32, step=8, grow_every=120):
        self.rnd = random.Random(rank)
        self.base, self.step, self.grow_every = base, step, grow_every

    def length(self, it):
        top = self.base + self.step * (it // self.grow_every)
        low = max(self.base, top - 2 * self.step)
        return self.rnd.choice(range(low, top + 1, self.step))
