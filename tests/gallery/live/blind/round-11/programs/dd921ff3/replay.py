import queue
import threading
from collections import deque

import torch


class TrajectoryReader(threading.Thread):
    def __init__(self, inbox, buffer):
        super().__init__(name="trajectory-reader", daemon=True)
        self.inbox, self.buffer = inbox, buffer
        self.stopped = False

    def run(self):
        while not self.stopped:
            for _ in range(self.inbox.qsize()):
                try:
                    self.buffer.append(self.inbox.get_nowait())
                except queue.Empty:
                    break


class Replay:
    def __init__(self, capacity=4000, seed=0):
        self.items = deque(maxlen=capacity)
        self.g = torch.Generator().manual_seed(seed)

    def append(self, item):
        self.items.append(item)

    def sample(self, n):
        idx = torch.randint(0, len(self.items), (n,), generator=self.g).tolist()
        return torch.stack([self.items[i] for i in idx])
