import random


class SFTDataset:
    """Documents of one file, dealt out round-robin over the data ranks."""

    def __init__(self, n, rank, world, seed=3):
        rng = random.Random(seed)
        self.lengths = [rng.randint(20, 180) for _ in range(n)]
        self.rank, self.world = rank, world

    def __iter__(self):
        for i in range(self.rank, len(self.lengths), self.world):
            rng = random.Random(i)
            yield [rng.randrange(200) for _ in range(self.lengths[i])]


class CatDataset:
    def __init__(self, source, seq_len):
        self.source, self.seq_len = source, seq_len

    def __iter__(self):
        buf = []
        for doc in self.source:
            buf += doc
            while len(buf) > self.seq_len:
                yield buf[: self.seq_len + 1]
                buf = buf[self.seq_len:]
