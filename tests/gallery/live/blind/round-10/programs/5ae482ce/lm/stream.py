import queue
import threading

import torch


class Prefetcher:
    """Background reader with a bounded queue of ready batches."""

    def __init__(self, seed, batch, ctx, vocab=128, depth=8):
        self.gen = torch.Generator().manual_seed(seed)
        self.batch, self.ctx, self.vocab = batch, ctx, vocab
        self.ready = queue.Queue(maxsize=depth)
        threading.Thread(target=self._fill, name="prefetch", daemon=True).start()

    def _fill(self):
        while True:
            start = torch.randint(0, self.vocab, (self.batch, 1), generator=self.gen)
            stride = torch.randint(1, 5, (self.batch, 1), generator=self.gen)
            seq = (start + stride * torch.arange(self.ctx + 1)) % self.vocab
            noise = torch.rand(seq.shape, generator=self.gen) < 0.02
            self.ready.put(torch.where(noise, (seq + 7) % self.vocab, seq))

    def next(self):
        seq = self.ready.get()
        return seq[:, :-1], seq[:, 1:]
