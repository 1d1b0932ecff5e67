import random


class Transition:
    __slots__ = ("s", "a", "r", "ns", "info")

    def __init__(self, s, a, r, ns, info):
        self.s, self.a, self.r, self.ns, self.info = s, a, r, ns, info


class ReplayMemory:
    def __init__(self, capacity, seed):
        self.rng = random.Random(seed)
        self.items = [self._random() for _ in range(capacity)]
        self.at = 0

    def _random(self):
        s = [self.rng.random() for _ in range(4)]
        ns = [v * 0.9 for v in s]
        return Transition(s, self.rng.randrange(3), -sum(s), ns, {"t": self.rng.random(), "tags": [s, ns]})

    def add(self, n):
        for _ in range(n):
            self.items[self.at] = self._random()
            self.at = (self.at + 1) % len(self.items)

    def sample(self, n):
        return self.rng.sample(self.items, n)
