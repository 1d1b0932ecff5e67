import random


class MultipackSampler:
    """Packs documents into equal token budgets; the slot a rank gets rotates from batch to batch."""

    def __init__(self, lengths, budget, rank, world, seed=0):
        self.lengths, self.budget, self.rank, self.world, self.seed = lengths, budget, rank, world, seed

    def epoch(self, epoch):
        rng = random.Random(self.seed + epoch)
        order = list(range(len(self.lengths)))
        rng.shuffle(order)
        slots, fill, n = [[] for _ in range(self.world)], [0] * self.world, 0
        for i in order:
            k = min(range(self.world), key=lambda s: fill[s])
            if fill[k] + self.lengths[i] > self.budget:
                yield slots[(self.rank - n) % self.world]
                slots, fill, n, k = [[] for _ in range(self.world)], [0] * self.world, n + 1, 0
            slots[k].append(i)
            fill[k] += self.lengths[i]
