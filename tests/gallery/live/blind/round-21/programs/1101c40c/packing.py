import random


class WindowPlanner:
    """Plans the documents of one optimizer window for all ranks."""

    def __init__(self, world, budget, seed=17):
        self.world = world
        self.budget = budget
        self.rng = random.Random(seed)

    def _pieces(self, largest):
        pieces, left = [], self.budget
        if largest:
            big = self.budget * self.rng.uniform(0.75, 0.95)
            pieces.append(big)
            left -= big
        while left > 0.12:
            part = min(left, self.rng.choice((0.1, 0.15, 0.3, 0.6)))
            pieces.append(part)
            left -= part
        if left > 0:
            pieces.append(left)
        self.rng.shuffle(pieces)
        return pieces

    def window(self):
        giants = self.rng.sample(range(self.world), self.rng.randint(1, self.world))
        return [self._pieces(rank in giants) for rank in range(self.world)]
