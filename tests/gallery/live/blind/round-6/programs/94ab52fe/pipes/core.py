import random


class Pipe:
    def map(self, fn):
        return Mapper(self, fn)

    def shuffle(self, size, seed=0):
        return Shuffler(self, size, seed)

    def shard(self, rank, world):
        return Sharder(self, rank, world)

    def batch(self, size, collate):
        return Batcher(self, size, collate)

    def prefetch(self, size):
        from .prefetcher import Prefetcher
        return Prefetcher(self, size)

    def limit(self, n):
        return Limiter(self, n)

    def reset(self):
        if hasattr(self, "source"):
            self.source.reset()


class Wrapper(Pipe):
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        yield from self.items


class Mapper(Pipe):
    def __init__(self, source, fn):
        self.source, self.fn = source, fn

    def __iter__(self):
        for x in self.source:
            yield self.fn(x)


class Sharder(Pipe):
    def __init__(self, source, rank, world):
        self.source, self.rank, self.world = source, rank, world

    def __iter__(self):
        for i, x in enumerate(self.source):
            if i % self.world == self.rank:
                yield x


class Shuffler(Pipe):
    def __init__(self, source, size, seed):
        self.source, self.size, self.rng = source, size, random.Random(seed)

    def __iter__(self):
        buf = []
        for x in self.source:
            buf.append(x)
            if len(buf) >= self.size:
                yield buf.pop(self.rng.randrange(len(buf)))
        self.rng.shuffle(buf)
        yield from buf


class Batcher(Pipe):
    def __init__(self, source, size, collate):
        self.source, self.size, self.collate = source, size, collate

    def __iter__(self):
        buf = []
        for x in self.source:
            buf.append(x)
            if len(buf) == self.size:
                yield self.collate(buf)
                buf = []


class Limiter(Pipe):
    def __init__(self, source, n):
        self.source, self.n = source, n

    def __iter__(self):
        for i, x in enumerate(self.source):
            yield x
            if i + 1 == self.n:
                return
