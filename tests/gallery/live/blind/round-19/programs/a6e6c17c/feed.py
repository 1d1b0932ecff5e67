import threading
import time
from collections import deque

import torch


class Feed:
    """Makes batches in a thread; bursts, then rests until the buffer runs low."""

    def __init__(self, batch, low=4, high=24, seed=8):
        self.batch, self.low, self.high = batch, low, high
        self.gen = torch.Generator().manual_seed(seed)
        self.proto = torch.randn(30, 1, 48, generator=self.gen)
        self.buffer, self.ready = deque(), threading.Condition()
        threading.Thread(target=self._fill, name="feed", daemon=True).start()

    def _make(self):
        y = torch.randint(30, (self.batch,), generator=self.gen)
        return self.proto[y] + 2 * torch.randn(self.batch, 36, 48, generator=self.gen), y

    def _fill(self):
        while True:
            if len(self.buffer) < self.low:
                while len(self.buffer) < self.high:
                    item = self._make()
                    with self.ready:
                        self.buffer.append(item)
                        self.ready.notify()
            time.sleep(0.02)

    def next(self):
        with self.ready:
            while not self.buffer:
                self.ready.wait()
            return self.buffer.popleft()
