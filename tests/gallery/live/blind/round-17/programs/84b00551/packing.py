import math
import random


class LengthSampler:
    """Conversation lengths with a heavy tail, as in the mixed chat/code/book set."""

    def __init__(self, seed, max_len):
        self.rng = random.Random(seed)
        self.max_len = max_len

    def draw(self):
        u = self.rng.random()
        if u < 0.75:
            n = self.rng.lognormvariate(math.log(40), 0.5)
        elif u < 0.96:
            n = self.rng.lognormvariate(math.log(160), 0.5)
        else:
            n = self.rng.uniform(0.6, 1.0) * self.max_len
        return max(8, min(int(n), self.max_len))


def pack_first_fit(lengths, capacity):
    bins = []
    for n in sorted(lengths, reverse=True):
        for b in bins:
            if sum(b) + n <= capacity:
                b.append(n)
                break
        else:
            bins.append([n])
    return bins


class StepPlanner:
    """Yields the micro-batches of each optimizer step; their number follows the data."""

    def __init__(self, seed, samples, capacity):
        self.lengths = LengthSampler(seed, capacity)
        self.samples = samples
        self.capacity = capacity

    def next_step(self):
        n = self.lengths.rng.choice(self.samples)
        return pack_first_fit([self.lengths.draw() for _ in range(n)], self.capacity)
