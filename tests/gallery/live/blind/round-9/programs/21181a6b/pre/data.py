import queue
import threading

import torch


class Stream:
    def __init__(self, seed, batch, ctx, vocab):
        self.gen = torch.Generator().manual_seed(seed)
        self.batch, self.ctx, self.vocab = batch, ctx, vocab

    def draw(self):
        start = torch.randint(0, self.vocab, (self.batch, 1), generator=self.gen)
        stride = torch.randint(1, 6, (self.batch, 1), generator=self.gen)
        seq = (start + stride * torch.arange(self.ctx + 1)) % self.vocab
        return seq[:, :-1].contiguous(), seq[:, 1:].contiguous()


class Prefetcher:
    def __init__(self, stream, depth=8):
        self.stream, self.queue = stream, queue.Queue(maxsize=depth)
        threading.Thread(target=self._fill, name="prefetch", daemon=True).start()

    def _fill(self):
        while True:
            self.queue.put(self.stream.draw())

    def next(self):
        return self.queue.get()
