import multiprocessing as mp
import random

import torch


def _produce(rank, world, out):
    torch.set_num_threads(1)
    step = 0
    while True:
        step += 1
        lengths = [8, 24, 40][:world]
        random.Random(step).shuffle(lengths)
        g = torch.Generator().manual_seed(step * 131 + rank)
        out.put((lengths[rank], torch.randn(6, lengths[rank], 16, generator=g).numpy()))


class Feeder:
    """Prepares batches of varying length in a process of its own."""

    def __init__(self, rank, world, depth=4):
        ctx = mp.get_context("spawn")
        self.queue = ctx.Queue(maxsize=depth)
        self.process = ctx.Process(target=_produce, args=(rank, world, self.queue), name="feeder", daemon=True)
        self.process.start()

    def next(self):
        length, array = self.queue.get()
        return length, torch.from_numpy(array)
