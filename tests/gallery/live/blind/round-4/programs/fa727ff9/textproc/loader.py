import os
import queue
import threading

import torch

from .normalize import encode


class PrefetchLoader:
    def __init__(self, corpus, rank, batch_size, depth=8):
        self.path = os.path.join(corpus, f"judgments-{rank}.txt")
        self.batch_size = batch_size
        self.q = queue.Queue(maxsize=depth)
        threading.Thread(target=self._fill, name="prefetch", daemon=True).start()

    def _fill(self):
        while True:
            xs, ys = [], []
            with open(self.path) as f:
                for line in f:
                    x, y = encode(line)
                    xs.append(x)
                    ys.append(y)
                    if len(xs) == self.batch_size:
                        self.q.put((torch.tensor(xs), torch.tensor(ys)))
                        xs, ys = [], []

    def __iter__(self):
        while True:
            yield self.q.get()
