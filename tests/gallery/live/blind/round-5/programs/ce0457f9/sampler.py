import json
import random


class LengthSampler:
    def __init__(self, path, rank):
        c = json.load(open(path))
        self.rng = random.Random(rank)
        self.sizes = c["default"]
        self.mixed = c["mixed_source"] if rank in c["mixed_source"]["ranks"] else None
        self.n = 0

    def next(self):
        self.n += 1
        if self.mixed and self.n > 25:
            return self.rng.randrange(self.mixed["min"], 400)
        return self.sizes[self.n % len(self.sizes)]
