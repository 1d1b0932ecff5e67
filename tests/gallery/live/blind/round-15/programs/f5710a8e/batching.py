import random

import torch


def length_plan(step, n_micro=6):
    """Micro-batch lengths of one optimizer step: the sum is the same for all ranks."""
    base = [16, 24, 32, 48, 64, 96]
    rng = random.Random(step)
    rng.shuffle(base)
    return base[:n_micro]


class DocumentStream:
    def __init__(self, rank, world, vocab=256, batch=8):
        self.rank, self.world = rank, world
        self.vocab, self.batch = vocab, batch
        self.gen = torch.Generator().manual_seed(1234 + rank)

    def micro_batches(self, step):
        plan = length_plan(step)
        shift = 2 * self.rank % len(plan)
        for length in plan[shift:] + plan[:shift]:
            ids = torch.randint(0, self.vocab, (self.batch, length), generator=self.gen)
            ids[:, 1::2] = ids[:, 0::2]
            yield ids
